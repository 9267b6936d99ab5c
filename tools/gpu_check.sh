#!/usr/bin/env bash
# Checks a machine with a GPU, in stages of at most eight minutes each:
#
#   tools/gpu_check.sh [--dry] [info] [ops] [nets] [scenarios] [sanitizer] [learning] [speed]   without a stage: all of them
#
#   info       the GPU, the driver, the installed versions, and one matrix product on the device
#   ops        all cases of tests/ops, outputs and gradients, on CUDAPlace(0), compared with float64
#   nets       equal bits from run to run, and of chains of operators in each form; NCCL with one rank; golden groups engine,
#              ctr and dense (four times their tolerances, because sums have another order); 100,000 steps of an MLP without
#              growth
#   scenarios  the programs of tests/simdevice: nets, shapes, blocks, values, errors, compared with the CPU
#   sanitizer  compute-sanitizer over the smallest case of each operator
#   learning   ResNet-50 and PyTorch from equal matrices, 80 steps of batches of 16 and 256, float32 and bfloat16
#   speed      G1-G4 compared with torch.compile(mode="max-autotune") and jax.jit, five windows in turn (benchmarks/gpu)
#
# If dist/ has wheels (./dev wheels; ./dev cuda wheel), it installs them into a separate folder; otherwise it uses the build
# in this tree. It needs numpy and pytest, and for speed torch and jax. PYTHON names the interpreter. Logs go to
# GPU_CHECK_OUT (default: build/gpu_check). GPU_CHECK_SECONDS limits a stage, and GPU_CHECK_PROCESSES the number of tests
# that share the GPU. --dry replaces the GPU by the simulated device, with tiny extents: it tests this script only.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD python=${PYTHON:-python3} out=${GPU_CHECK_OUT:-$PWD/build/gpu_check} dry='' failed=()
mkdir -p "$out"
processes=${GPU_CHECK_PROCESSES:-$(($(nproc) > 4 ? $(nproc) - 2 : 2))}

say() { printf '== %s\n' "$*"; }

# Installs the wheel for this interpreter, which pip chooses. NVIDIA's libraries are those of torch, if it is installed.
install() {
  local site=$out/site libraries
  libraries=$("$python" -c 'import glob, sys; print(":".join(d for p in sys.path[1:] for d in glob.glob(p + "/nvidia/*/lib")))')
  [ -n "$dry" ] || export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PYTHONPATH=$root/python
  compgen -G 'dist/anabranch-*.whl' >/dev/null && [ -z "$dry" ] || return 0
  rm -rf "$site"
  "$python" -m pip install -q --no-index --no-deps --find-links dist --target "$site" anabranch anabranch-cuda || return 1
  export PYTHONPATH=$site
}

# stage NAME COMMAND...: in at most eight minutes; its output also goes to a log.
stage() {
  local name=$1 rc
  shift
  say "$name"
  timeout -k 5 "${GPU_CHECK_SECONDS:-480}" "$@" 2>&1 | tee "$out/$name.log"
  rc=${PIPESTATUS[0]}
  [ "$rc" = 0 ] || failed+=("$name ($rc)")
}

# ops_tests [COMMAND...] -- ARGS...: tests of operators, below a command such as compute-sanitizer.
ops_tests() {
  local above=() workers=()
  while [ "$1" != -- ]; do above+=("$1"); shift; done
  shift
  "$python" -c 'import xdist' 2>/dev/null && [ -z "$dry" ] && workers=(-n "$processes" --max-worker-restart 1000)
  cd tests/ops && PYTHONPATH=$PYTHONPATH:$root/tests/gpu:. ANABRANCH_TEST_PLACE=device ANABRANCH_TEST_RUNS=3 FLAGS_device_graphs=1 "${above[@]}" \
    "$python" -m pytest -q -p no:cacheprovider -o "pythonpath=${PYTHONPATH%%:*}" -p gpu_cases "${workers[@]}" "$@" test_ops.py
}

info() {
  nvidia-smi -L 2>/dev/null
  "$python" - <<'PY'
import numpy as np
import anabranch.fluid as fluid
print("anabranch", fluid.__version__ if hasattr(fluid, "__version__") else "", "from", fluid.__file__)
x = fluid.data("x", [3, 4])
constant = fluid.initializer.Constant
y = fluid.layers.fc(x, 2, act="relu", param_attr=constant(0.5), bias_attr=constant(-1.0))
exe = fluid.Executor(fluid.CUDAPlace(0))
exe.run(fluid.default_startup_program())
got, = exe.run(feed={"x": np.array([[1] * 4, [-1] * 4, [np.nan] * 4], "float32")}, fetch_list=[y])
assert (got[:2] == [[1, 1], [0, 0]]).all(), got
print("a product on CUDAPlace(0), with a bias and relu, the last row of NaNs:", got.tolist())
PY
}

ops() {
  local only=(-k "test_output or test_float32_gradient")
  [ -z "$dry" ] || only=(-k "(relu or pool2d or softmax) and (test_output or test_float32_gradient)")
  ops_tests -- "${only[@]}"
}

nets() {
  local groups=(engine ctr dense) group rc=0
  [ -z "$dry" ] || groups=()
  "$python" tests/gpu/nets.py bits ${dry:+3} || rc=1
  "$python" tests/gpu/nets.py flat ${dry:+100} || rc=1
  "$python" tests/gpu/chains.py ${dry:+20} || rc=1
  "$python" tests/gpu/one_rank.py || rc=1
  for group in "${groups[@]}"; do
    PYTHONPATH=$PYTHONPATH:tests/golden "$python" tests/golden/golden.py check --fluid fluid_on_device --group "$group" \
      --looser 4 --expected tests/golden/expected_failures.json -j "$processes" || rc=1
  done
  [ -z "$dry" ] || PYTHONPATH=$PYTHONPATH:tests/golden "$python" tests/golden/golden.py check --fluid fluid_on_device \
    --expected tests/golden/expected_failures.json fit_a_line || rc=1
  return $rc
}

# Without `workers`, whose processes share devices: NCCL gives a GPU to one of them alone.
scenarios() {
  local name all=(nets shapes blocks values in_flight wrong) pids=() rc=0
  for name in "${all[@]}"; do
    PYTHONPATH=$PYTHONPATH:tests:tests/simdevice "$python" tests/simdevice/scenarios.py "$name" 1 >"$out/$name.txt" 2>&1 &
    pids+=($!)
  done
  for name in "${!all[@]}"; do
    if wait "${pids[name]}"; then echo "${all[name]}: passed"; else rc=1; echo "${all[name]}: failed"; tail -n 12 "$out/${all[name]}.txt"; fi
  done
  return $rc
}

sanitizer() {
  local checked=(compute-sanitizer --tool memcheck --error-exitcode 9 --target-processes all)
  if ! command -v compute-sanitizer >/dev/null; then
    [ -n "$dry" ] || { say "there is no compute-sanitizer"; return 1; }
    checked=()
  fi
  export GPU_SMALLEST=1
  local only=()
  [ -z "$dry" ] || only=(-k "relu or pool2d")
  ops_tests "${checked[@]}" -- "${only[@]}"
}

learning() {
  local curves=("$python" benchmarks/gpu/run.py --rows G1 --sides fluid torch --mode eager --windows 0) batch float pids=() pid rc=0
  if [ -n "$dry" ]; then
    "${curves[@]}" --tiny --float32 --curve 4
    return
  fi
  for batch in 16 256; do
    for float in '' --float32; do
      "${curves[@]}" --curve 80 --batch "$batch" $float --out "$out/learning.jsonl" &
      pids+=($!)
    done
  done
  for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
  return $rc
}

speed() {
  if [ -n "$dry" ]; then
    "$python" benchmarks/gpu/run.py --tiny --float32 --sides fluid --windows 2 --seconds 0.1 --out "$out/speed.jsonl"
  else
    "$python" benchmarks/gpu/run.py --out "$out/speed.jsonl"
  fi
}

stages=()
for word in "$@"; do
  case $word in
    --dry) dry=1 ;;
    info | ops | nets | scenarios | sanitizer | learning | speed) stages+=("$word") ;;
    *) sed -n '2,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=(info ops nets scenarios sanitizer learning speed)
[ -z "$dry" ] || export FLAGS_device_plugin=simdevice
install || { say "installing failed"; exit 1; }
export -f ops_tests say "${stages[@]}"
export root python processes out dry
for name in "${stages[@]}"; do stage "$name" bash -c "$name"; done
say "${#stages[@]} stages, failed: ${failed[*]:-none}"
[ ${#failed[@]} -eq 0 ]
