"""Which profiler `eprof run` takes where the user names none: by what the program is."""

import shutil

import pytest

from eprof import profilers
from eprof.collect.collector import Tool
from eprof.commands.run import settings


def test_auto_takes_the_simulated_gpu_for_a_program_that_names_opencl_only(tmp_path, monkeypatch):
    named = [Tool("oclgrind", True, ""), Tool("callgrind", True, "")]
    for tool in named:
        (collector,) = (one for one in profilers.collectors() if one.name == tool.name)
        monkeypatch.setattr(type(collector), "find", lambda self, program="", tool=tool: tool)
    monkeypatch.setattr(profilers, "names", lambda: ["oclgrind", "callgrind"])
    for text, expected in (("import pyopencl", "oclgrind"), ("import numpy", "callgrind")):
        script = tmp_path / "script.py"
        script.write_text(text)
        assert settings.choose("auto", "/bin/sh", [str(script)])[1].name == expected


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_machine_code_that_links_no_gpu_library_goes_to_profilers_of_cpus(tmp_path, monkeypatch):
    program = shutil.which("true")
    script = tmp_path / "a.py"
    script.write_text("print()")
    assert settings.uses_gpu(program) is False
    assert settings.uses_gpu(program, [str(script)]) is None  # it may be an interpreter
    assert settings.uses_gpu(str(script)) is None
    monkeypatch.setattr(settings, "ask", lambda words: "\tlibmine.so => /x\n\tlibcudart.so.12 => not found\n")
    assert settings.uses_gpu(program) is True
    monkeypatch.setattr(settings, "ask", lambda words: "\tlibcurl.so.4 => /usr/lib/libcurl.so.4 (0x7f)\n")
    _, _, looked = settings.choose("auto", program)
    assert {tool.name for tool in looked} <= {"perf", "callgrind"}
