"""The step ``date``: parts of dates and times, in equal bits in data sets, ``feed`` and a Predictor."""
import datetime
import random

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L

PARTS = {"hour": 24, "weekday": 7, "hour_of_week": 168, "day": 31, "month": 12}


def parts(moment):
    return {"hour": moment.hour, "weekday": moment.weekday(), "hour_of_week": 24 * moment.weekday() + moment.hour,
            "day": moment.day - 1, "month": moment.month - 1}


@pytest.fixture(scope="module")
def schema():
    made = anabranch.Schema()
    for part in PARTS:
        made.text("time", part).date(part, others=False)
        made.text("time", part + "_or_none").date(part)
    return made


def ids(schema, text):
    """dict: part -> its id, or -1."""
    return {part: int(schema.transform(part + "_or_none", [text])[0, 0]) - 1 for part in PARTS}


WHOLE = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M", "%Y-%m-%dT%H:%M:%S.%f",
         "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+09:00", "%Y-%m-%dT%H:%M:%S-0130", "%Y-%m-%dT%H:%M+02"]


def test_all_forms_of_a_moment_have_its_parts(schema):
    draw = random.Random(1)
    for _ in range(300):
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=draw.randrange(2 * 10 ** 8, 4 * 10 ** 9))
        for form in WHOLE:
            assert ids(schema, moment.strftime(form)) == parts(moment), moment.strftime(form)
        for form in "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d":
            assert ids(schema, moment.strftime(form)) == dict(parts(moment), hour=-1, hour_of_week=-1)
        seconds = int((moment - datetime.datetime(1970, 1, 1)).total_seconds())
        for text in seconds, "%d.75" % seconds, seconds * 1000, seconds * 10 ** 6, seconds * 10 ** 9:
            assert ids(schema, text) == parts(moment), text
        assert ids(schema, moment.strftime("%H:%M:%S")) == dict.fromkeys(PARTS, -1) | {"hour": moment.hour}


NO_DATES = ["", "soon", "2024-02-30", "2024-13-01", "2024-00-10", "2023-02-29", "2024-1-5", "05.01.2024",
            "01/05/2024", "2024-01-05x", "2024-01-05T24:00", "2024-01-05T12:60", "2024-01-05T12", "2024-01-05T",
            "2024-01-05 12:00 PM", "2024/01-05", "123", "12345678901234", "12345678901234567", "-1700000000",
            "2024-01-05T12:00+25:00", "2024-01-05T12:00.5", "2024-01-05T12:00:00.", " 2024-01-05", "24:00",
            "9999999999999999999", "20241301", "\u0662024-01-05"]


@pytest.mark.parametrize("text", NO_DATES)
def test_other_texts_have_no_part(schema, text):
    assert ids(schema, text) == dict.fromkeys(PARTS, -1)
    with pytest.raises(ValueError, match="missing" if not text else "a text is not a date or time with the part"):
        schema.transform("weekday", [text])


def test_sizes(schema):
    assert {part: schema[part].size for part in PARTS} == PARTS
    assert all(schema[part + "_or_none"].size == size + 1 for part, size in PARTS.items())


def test_a_leap_day(schema):
    assert ids(schema, "2024-02-29") == {"hour": -1, "weekday": 3, "hour_of_week": -1, "day": 28, "month": 1}


def test_missing_comes_first():
    schema = anabranch.Schema()
    schema.text("time").missing("2024-01-05").date("weekday", others=False)
    assert schema.transform("time", ["", "2024-01-06"]).tolist() == [[4], [5]]
    with pytest.raises(ValueError, match="date cannot follow a step that gives ids"):
        schema["time"].date("hour")
    with pytest.raises(ValueError, match="the part must be one of hour, weekday, .* got houre; did you mean hour"):
        schema.text("time", "other").date("houre")
    with pytest.raises(ValueError, match="number"):
        schema.number("time", "number").date("hour")


def test_reader_and_predictor_give_equal_ids(tmp_path):
    draw = random.Random(2)
    texts = [datetime.datetime.fromtimestamp(draw.randrange(2 * 10 ** 9), datetime.timezone.utc).strftime(
        draw.choice(WHOLE + ["%s", "%Y-%m-%d", "never"])) for _ in range(500)] + NO_DATES
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        schema = anabranch.Schema()
        for part in PARTS:
            schema.text("time", part).date(part)
        schema.cross([schema["hour"], schema["weekday"]], 1000, name="both")
        inputs = schema.inputs()
        path = str(tmp_path / "a.csv")
        with open(path, "w") as file:
            file.write("time,x\n" + "".join('"%s",1\n' % text for text in texts))
        data = fluid.DatasetFactory().create_dataset()
        data.set_use_var(list(inputs.values()))
        data.set_format(schema)
        data.set_filelist([path])
        data.set_batch_size(1000)
        batch, = data._batches()
        fed = schema.feed([{"time": text} for text in texts])
        target = L.concat(list(inputs.values()), 1)
        fluid.io.save_inference_model(str(tmp_path / "model"), list(inputs), [target], fluid.Executor(), schema=schema)
        answer, = anabranch.Predictor(str(tmp_path / "model")).run_rows([{"time": text} for text in texts])
    for place, name in enumerate(inputs):
        assert np.array_equal(np.array(batch[name]), fed[name])
        assert np.array_equal(answer[:, place:place + 1], fed[name])
