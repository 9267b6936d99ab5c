"""Settings of Fluid's configs of predictors, and the places where they say that a model is."""
import shutil
import warnings

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import core

X = numpy.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture
def saved(tmp_path):
    """A folder with a model in two files, and what it computes for X."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        y = fluid.layers.fc(fluid.data("x", [None, 3]), 2, act="tanh")
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, main, "net", "params")
        return tmp_path, exe.run(main, {"x": X}, [y])[0]


def computed(config):
    return core.create_paddle_predictor(config).run([core.PaddleTensor(X)])[0].as_ndarray()


def test_a_model_in_memory(saved):
    folder, expected = saved
    net, params = (folder / "net").read_bytes(), (folder / "params").read_bytes()
    config = core.AnalysisConfig("")
    assert not config.model_from_memory()
    config.set_model_buffer(net, len(net), params, len(params))
    assert config.model_from_memory() and numpy.array_equal(computed(config), expected)
    assert numpy.array_equal(anabranch.Predictor(None, net, params).run([X])[0], expected)
    config.set_model(str(folder / "net"), str(folder / "params"))
    assert not config.model_from_memory() and numpy.array_equal(computed(config), expected)


def test_files_in_two_folders(saved):
    folder, expected = saved
    (folder / "other").mkdir()
    shutil.move(str(folder / "params"), str(folder / "other" / "renamed"))
    config = core.AnalysisConfig(str(folder / "net"), str(folder / "other" / "renamed"))
    assert numpy.array_equal(computed(config), expected)


def test_a_native_config_has_attributes(saved):
    folder, expected = saved
    config = core.NativeConfig()
    assert (config.use_gpu, config.device, config.fraction_of_gpu_memory) == (False, 0, -1.0)
    config.prog_file, config.param_file = str(folder / "net"), str(folder / "params")
    config.set_cpu_math_library_num_threads(2)
    assert numpy.array_equal(computed(config), expected) and config.cpu_math_library_num_threads() == 2
    native = core.AnalysisConfig(config.prog_file, config.param_file).to_native_config()
    assert native.prog_file == config.prog_file and numpy.array_equal(computed(native), expected)


def test_queries_before_and_after_switches():
    config = core.AnalysisConfig("folder")
    assert [config.glog_info_disabled(), config.specify_input_name(), config.tensorrt_engine_enabled(),
            config.mkldnn_enabled(), config.lite_engine_enabled(), config.gpu_device_id(),
            config.memory_pool_init_size_mb(), config.fraction_of_gpu_memory_for_pool()] \
        == [False, False, False, False, False, 0, 100, 0.0]
    config.disable_glog_info()
    config.switch_specify_input_names()
    assert config.glog_info_disabled() and config.specify_input_name()
    config.switch_specify_input_names(False)
    assert not config.specify_input_name()
    assert core.AnalysisConfig("folder").glog_info_disabled() is False


def test_passes_are_listed():
    config = core.AnalysisConfig("folder")
    passes = config.pass_builder()
    passes.delete_pass("conv_bn_fuse_pass")
    passes.set_passes(["a", "b", "b", "c"])
    passes.append_pass("d")
    passes.insert_pass(0, "first")
    passes.delete_pass("b")
    passes.delete_pass(1)
    passes.append_analysis_pass("analysis")
    passes.turn_on_debug()
    assert config.pass_builder().all_passes() == ["first", "c", "d"] and passes.analysis_passes() == ["analysis"]
    assert passes.debug_string().split()[-1] == "d"


def test_engines_that_are_not_here_warn():
    config = core.AnalysisConfig("folder")
    with pytest.warns(UserWarning, match="enable_tensorrt_engine has no effect: TensorRT is not supported"):
        config.enable_tensorrt_engine(workspace_size=1 << 20, precision_mode=core.AnalysisConfig.Precision.Half)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.enable_memory_optim()
        config.switch_ir_optim(True)
    assert not config.tensorrt_engine_enabled()
