"""Objects are read as Go reads them: `answers.jsonl` is what Kubernetes' own types made of `questions.jsonl`.

`scripts/go-types/README.md` tells how the answers are recorded.
"""

import json
from pathlib import Path

import pytest

from kubewire import gotypes
from kubewire.gotext import quote

HERE = Path(__file__).parent


def recorded():
    questions, answers = (
        (HERE / f"{name}.jsonl").read_text().splitlines() for name in ("questions", "answers")
    )
    for question, answer in zip(map(json.loads, questions), map(json.loads, answers), strict=True):
        yield pytest.param(question["definition"], question["text"], answer, id=question["name"])


@pytest.mark.parametrize(("definition", "text", "answer"), list(recorded()))
def test_an_object_is_read_as_go_reads_it(definition, text, answer):
    obj = json.loads(text)
    if "error" in answer:
        with pytest.raises(gotypes.DecodeError) as refused:
            gotypes.read(definition, obj)
        assert str(refused.value) == answer["error"]
        assert obj == json.loads(text), "what cannot be read is left as it was"
    else:
        unknown = gotypes.read(definition, obj)
        assert json.dumps(obj, sort_keys=True) == json.dumps(answer["stored"], sort_keys=True)
        assert [f"unknown field {quote(path)}" for path in unknown] == answer.get("unknown", [])
