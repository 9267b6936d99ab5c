// Chains of elementwise steps that the driver compiles: the text, which the toolkit's assembler takes, and the kernels
// that are made of it.
#include "cuda/step_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "cuda/step_text.h"
#include "harness.h"
#include "ops/math/step_functions.h"

namespace anabranch::cuda {
namespace {

using math::StepCode;
using testing::HasSubstr;
using testing::Not;

// Of two inputs, or of the step before and the second one.
ElementStep step_of(StepCode code, bool goes_on) {
  ElementStep s{};
  s.code = static_cast<uint8_t>(code);
  s.kept = s.out = kNowhere;
  s.count = 4;
  s.previous = goes_on;
  for (const int k : {1, 2, 3}) s.operands[k] = 1;
  s.p[0] = 0.5f;
  s.p[1] = 2;
  return s;
}

std::vector<ElementStep> chain(std::initializer_list<StepCode> codes) {
  std::vector<ElementStep> steps;
  for (const StepCode code : codes) steps.push_back(step_of(code, !steps.empty()));
  steps.back().out = 0;
  return steps;
}

ElementStepsArgs args_of(float* x, float* y, int64_t n) {
  ElementStepsArgs a{};
  const auto bytes = static_cast<uint64_t>(n) * 4;
  a.in[0] = a.in[1] = {{x, bytes}, 1, 0};
  a.out[0] = {y, bytes};
  a.n = n;
  a.inputs = 2;
  a.outs = 1;
  return a;
}

class CudaSteps : public Cuda {
 protected:
  static int make(const std::vector<ElementStep>& steps, ab_kernel* out, const char* key = "element_steps/f32") {
    return api.kernel_make(kernel(key), steps.data(), steps.size() * sizeof(ElementStep), out);
  }
  // The entry that is launched for these args.
  static std::string launched(ab_queue* queue, ab_kernel made, const ElementStepsArgs& a) {
    std::string entry;
    fake::state().launched = [&](const std::string& name, unsigned blocks, void** args) {
      EXPECT_EQ(memcmp(args[0], &a, sizeof a), 0);
      entry = said(name, " ", blocks);
    };
    EXPECT_EQ(api.launch(queue, made, &a, sizeof a, nullptr, 0), AB_OK) << last_error();
    return entry;
  }
};

// The messages of ptxas, "" when there are none.
std::string assembled(const std::string& text) {
  const std::string own = testing::UnitTest::GetInstance()->current_test_info()->name();  // tests run side by side
  const auto folder = std::filesystem::path(testing::TempDir()) / ("steps_" + own);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "steps.ptx") << text;
  const auto log = folder / "steps.log";
  const std::string command = said(AB_PTXAS, " -arch=sm_", kOldestGeneration, " -o ", folder / "steps.cubin", " ",
                                   folder / "steps.ptx", " > ", log, " 2>&1");
  const int status = std::system(command.c_str());
  std::ifstream read(log);
  std::string said_of_it((std::istreambuf_iterator<char>(read)), {});
  return status == 0 ? said_of_it : said("failed: ", said_of_it);
}

// Steps of the codes from `begin` up to `end`, of which some are kept, read again or stored.
std::vector<ElementStep> steps_of(int begin, int end) {
  std::vector<ElementStep> steps;
  for (int k = 0; k < end - begin; ++k) {
    steps.push_back(step_of(static_cast<StepCode>(begin + k), k > 0));
    if (k % 7 == 3) steps.back().kept = 3, steps.back().exact = 1;
    if (k > 7) steps.back().operands[3] = 3;
    if (k % 10 == 0) steps.back().out = static_cast<uint8_t>(k / 10);
  }
  return steps;
}

TEST_F(CudaSteps, EveryStepOfEveryTypeIsAssembled) {
  Sim sim;
  constexpr int kCodes = static_cast<int>(StepCode::kCopy) + 1, kAtOnce = 12;
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (int begin = 0; begin < kCodes; begin += kAtOnce) {
      const auto steps = steps_of(begin, std::min(kCodes, begin + kAtOnce));
      const std::string text = step_text(step_functions(), steps, {type});
      EXPECT_EQ(assembled(text), "") << type << " from " << begin;
      EXPECT_THAT(text, HasSubstr(said(".entry ", kOneEntry)));
      EXPECT_THAT(text, HasSubstr(said(".entry ", kPackEntry)));
    }
  }
}

TEST_F(CudaSteps, PacksOfLongChainsAreSmaller) {
  const auto elements_of = [](int steps, const char* type) {
    std::vector<ElementStep> all = chain({StepCode::kTanh});
    for (int k = 1; k < steps; ++k) all.insert(all.begin(), step_of(StepCode::kTanh, steps - k > 1));
    all.back().previous = steps > 1;
    const StepType of{type};
    const int elements = elements_of_pack(step_functions(), all, of);
    const std::string text = step_text(step_functions(), all, of);
    EXPECT_EQ(text.find(kPackEntry) == std::string::npos, elements == 1);
    EXPECT_LT(text.size(), 300000u);
    if (steps > 8) {
      EXPECT_EQ(assembled(text), "");
    }
    return elements;
  };
  EXPECT_EQ(elements_of(1, "f32"), 4);
  EXPECT_EQ(elements_of(1, "bf16"), 8);
  std::set<int> seen;
  for (const int steps : {8, 16, 32, 64, 128}) seen.insert(elements_of(steps, "bf16"));
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 4, 8));
}

// The driver's compiler makes one instruction of those that do not say how they are rounded.
TEST_F(CudaSteps, EverySumAndProductIsRoundedByItself) {
  const auto codes = {StepCode::kMul, StepCode::kAdd, StepCode::kScale, StepCode::kGelu, StepCode::kTanhGrad};
  const std::string text = step_text(step_functions(), chain(codes), {"f32"});
  for (const std::string op : {"mul", "add", "sub"}) {
    EXPECT_THAT(text, HasSubstr(op + ".rn.f32"));
    EXPECT_THAT(text, Not(HasSubstr(op + ".f32")));
  }
}

TEST_F(CudaSteps, ReadsWhatStepsLeaveForLaterOnes) {
  auto steps = chain({StepCode::kMul, StepCode::kAdd, StepCode::kSub});
  steps[0].kept = 2;
  steps[2].operands[1] = 2;
  EXPECT_EQ(assembled(step_text(step_functions(), steps, {"f32"})), "");
  steps[2].previous = 0;
  steps[2].operands[0] = 2;
  steps[0].kept = kNowhere;
  const std::string text = step_text(step_functions(), steps, {"f32"});  // it is an input now
  EXPECT_THAT(text, HasSubstr(said("[args+", offsetof(ElementStepsArgs, in) + 2 * sizeof(device::StepInput), "]")));
}

TEST_F(CudaSteps, OneKernelForEqualTables) {
  Sim sim;
  ab_kernel first = nullptr, second = nullptr, other = nullptr;
  const auto steps = chain({StepCode::kMul, StepCode::kRelu});
  AB_WELL(make(steps, &first));
  AB_WELL(make(steps, &second));
  EXPECT_EQ(fake::state().libraries, 1);
  AB_WELL(make(chain({StepCode::kMul, StepCode::kTanh}), &other));
  EXPECT_EQ(fake::state().libraries, 2);
  AB_WELL(api.kernel_free(first));
  AB_WELL(api.kernel_free(other));
  EXPECT_EQ(fake::state().libraries, 1);
  AB_FAILS(api.close(), AB_INVALID_ARGUMENT, "closed while there were 1 made kernels");
}

TEST_F(CudaSteps, PacksAreForManyElementsThatLieWell) {
  Sim sim;
  ab_kernel made = nullptr;
  AB_WELL(make(chain({StepCode::kMul, StepCode::kRelu}), &made));
  ab_queue* q = sim.queue("compute");
  alignas(16) float x[8] = {}, y[8] = {};
  const int64_t many = 1 << 20;
  EXPECT_EQ(launched(q, made, args_of(x, y, 5)), said(kOneEntry, " 1"));
  EXPECT_EQ(launched(q, made, args_of(x, y, many)), said(kPackEntry, " 1024"));
  EXPECT_EQ(launched(q, made, args_of(x, y, 64 * many)), said(kPackEntry, " 4224"));
  EXPECT_EQ(launched(q, made, args_of(x, y, many + 1)), said(kOneEntry, " 4097"));
  EXPECT_EQ(launched(q, made, args_of(x + 1, y, many)), said(kOneEntry, " 4096"));
  EXPECT_EQ(launched(q, made, args_of(x, y + 1, many)), said(kOneEntry, " 4096"));
  ElementStepsArgs spread = args_of(x, y, many);
  spread.in[1].period = 4;
  EXPECT_EQ(launched(q, made, spread), said(kOneEntry, " 4096"));
  EXPECT_EQ(launched(q, made, args_of(x, y, 0)), "");
  AB_WELL(api.kernel_free(made));
}

TEST_F(CudaSteps, WithoutACompilerKernelsReadTheirTables) {
  Sim sim;
  ab_kernel none = nullptr;
  const auto steps = chain({StepCode::kSquare});
  fail_next("cudaLibraryLoadData", cudaErrorUnsupportedPtxVersion);
  AB_FAILS(make(steps, &none), AB_UNSUPPORTED, "the driver does not compile a kernel: an error");
  AB_FAILS(make(steps, &none, "test/scale/f32"), AB_UNSUPPORTED, "kernel test/scale/f32 is not made for a table");
  EXPECT_EQ(none, nullptr);
  AB_FAILS(api.kernel_make(kernel("element_steps/f32"), steps.data(), 5, &none), AB_INVALID_ARGUMENT,
           "a table of steps must have whole steps, got 5 bytes");
  AB_FAILS(api.kernel_free(kernel("element_steps/f32")), AB_INVALID_ARGUMENT, "was not made by kernel_make()");
  auto lost = steps;
  lost[0].previous = 1;
  AB_FAILS(make(lost, &none), AB_INTERNAL, "a step reads what no step before it has left");
  AB_WELL(make(steps, &none));
  AB_WELL(api.kernel_free(none));
}

TEST_F(CudaSteps, NothingIsCompiledWhenTheFlagIsOff) {
  Sim sim(Flags{{"device_compile", "false"}});
  ab_kernel none = nullptr;
  AB_FAILS(make(chain({StepCode::kSquare}), &none), AB_UNSUPPORTED, "FLAGS_device_compile is off");
}

}  // namespace
}  // namespace anabranch::cuda
