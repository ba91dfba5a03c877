"""Documents in which every text that can come from outside is hostile."""

import copy
import re

PAYLOAD = (
    "</title></style></script><script>window.hacked=1</script><img data-canary src=x onerror=window.hacked=1>"
    "<svg data-canary onload=window.hacked=1><style>*{background:url(http://canary.invalid/)}</style>"
    "<a data-canary href='javascript:window.hacked=1'>c</a><iframe data-canary src=data:text/html,x></iframe>"
    "<meta data-canary http-equiv=refresh content='0;url=http://canary.invalid/'><base data-canary href=//canary.invalid/>"
    "<form data-canary action=//canary.invalid/><!-- --!> ]]> \" onmouseover=window.hacked=1 data-canary=1 x=' "
    "onfocus=window.hacked=1 data-canary `${window.hacked=1}` {{7*7}}{%raw%} &lt;b data-canary&gt; \\u003cb\\u003e "
    "\u2028\u2029\u202e\u2066\u200b\u200d\ufeff\u3164\u00ad\x00\x08\x1b]8;;http://canary.invalid\x07\x1b[31m\x9b31m\x7f"
    " javascript:window.hacked=1 \ud800 =HYPERLINK(1) | `x` [l](//canary.invalid) *b* [red]markup[/red] [link=x]y[/link]"
)
# What a reader must see as an escape: nothing of it shows, or it turns or hides what is beside it.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u115f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff]"
)
# Words of eprof's own, which documents are made of; a document made by eprof has no others there.
OURS = (
    "schema", "because", "eprof", "created_utc", "marks", "time_marks", "energy_marks", "unit", "status", "how", "what", "books",
    "precision", "lever", "kind", "protocol", "main_protocol", "objective", "from", "method", "voltages", "loss",
    "weights", "sha256", "case", "domain", "measured_as",
)  # fmt: skip


def poisoned(document, payload=PAYLOAD, ours=OURS, **more):
    """A copy of a document of eprof with `payload` behind every text that is no word of its own; more: keys to change."""
    return {**_poisoned(copy.deepcopy(document), payload, set(ours)), **more}


def _poisoned(value, payload, ours):
    if isinstance(value, dict):
        return {key: one if key in ours else _poisoned(one, payload, ours) for key, one in value.items()}
    if isinstance(value, list):
        return [_poisoned(one, payload, ours) for one in value]
    return f"{value}{payload}" if isinstance(value, str) else value


def texts(value, ours=OURS):
    """How many texts `poisoned` changes."""
    if isinstance(value, dict):
        return sum(0 if key in ours else texts(one, ours) for key, one in value.items())
    return sum(texts(one, ours) for one in value) if isinstance(value, list) else isinstance(value, str)
