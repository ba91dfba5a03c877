"""One profile of callgrind in both of its forms: every name and address written out, and all written short."""

PLAIN = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: ./a
positions: instr
events: Ir Dr Dw
ob=/a
fn=main
0x10 1 0 1
0x12 2
cob=/b.so
cfn=work
calls=3 0x40
0x14 30 5
0x16 1
ob=/b.so
fn=work
0x40 30 5
totals: 34 5 1
"""
COMPRESSED = """version: 1
creator: callgrind-3.19.0
cmd: ./a
positions: instr line
events: Ir Dr Dw
ob=(1) /a
fl=(1) a.c
fn=(1) main
0x10 7 1 0 1
+2 * 2
fi=(2) inlined.h
cob=(2) /b.so
cfi=(3) b.c
cfn=(2) work'2
calls=3 +44 9
+2 +1 30 5
jcnd=1/2 +8 +2
*
fe=(1)
+2 -1 1
ob=(2)
fl=(3)
fn=(2)
0x40 9 30 5
totals: 34 5 1
"""
