"""``anabranch summary``: what models of both ways of saving hold."""
import anabranch.fluid as fluid
from anabranch import summary


def test_models_of_both_ways_of_saving(tmp_path, capsys):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("words", [None, 1], "int64", lod_level=1)
        out = fluid.layers.fc(fluid.layers.sequence_pool(fluid.embedding(x, [1000, 4]), "sum"), 1, bias_attr=False)
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(out))
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "model"), ["words"], [out], exe, main)
        fluid.save(main, str(tmp_path / "net"))
    assert summary.main([str(tmp_path / "model")]) == 0
    said = capsys.readouterr().out
    assert "words  [-1, 1] int64 lod_level 1" in said and "1 lookup_table_v2, 1 mul, 1 scale, 1 sequence_pool" in said
    assert "4,004 values, 16,016 bytes" in said.replace("other state", "parameters")
    assert summary.main([str(tmp_path / "net")]) == 0
    said = capsys.readouterr().out
    assert "2 adam" in said and "learning_rate_0" in said
    assert max(map(len, said.splitlines())) <= 80 and " 1 value  " in said and " 1 values" not in said, said


def test_growable_tables(tmp_path, capsys):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        rows = fluid.layers.embedding(fluid.data("ids", [None, 1], "int64"), [-1, 4], is_sparse=True,
                                      param_attr=fluid.GrowableTable("table"))
        out = fluid.layers.fc(fluid.layers.reshape(rows, [-1, 4]), 1, bias_attr=False)
        fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(out))
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [out], exe, main)
        fluid.save(main, str(tmp_path / "net"))
    for name in ("model", "net"):
        assert summary.main([str(tmp_path / name)]) == 0
        said = capsys.readouterr().out
        assert "parameters: 4 values, 16 bytes" in said and "  table     [-1, 4] float32, growable\n" in said, said


def test_no_model(tmp_path, capsys):
    assert summary.main([str(tmp_path / "none")]) == 1
    assert "there is no model" in capsys.readouterr().err
    (tmp_path / "bad").write_bytes(b"\\xff" * 20)
    assert summary.main([str(tmp_path / "bad")]) == 1
    assert "%s is not a saved model: " % (tmp_path / "bad") in capsys.readouterr().err
