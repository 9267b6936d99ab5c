// "gemm" by cuBLASLt. cuBLASLt stores matrices column by column, and the engine row by row. It therefore computes the
// transposed product b' a' = (a b)', whose operands are the same bytes with rows and columns exchanged. The bias that
// cuBLASLt adds has a number for each row of its result, that is, for each column of the engine's.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>

#include "handles.h"
#include "open_cublas.h"
#include "ops/device/args.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

using device::GemmDesc;

template <class T> using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
  int64_t bytes;
};

Types types_of(int32_t dtype, bool tf32) {
  switch (dtype) {
    case AB_FLOAT32: return {CUDA_R_32F, CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, 4};
    case AB_FLOAT64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 8};
    case AB_FLOAT16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
    case AB_BFLOAT16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
    default: fail(AB_UNSUPPORTED, "gemm: element type ", dtype, " is not supported");
  }
}

// An operand as it is stored.
struct Stored {
  const char* name;
  int64_t rows, columns, row, stride;

  int64_t elements(int64_t batch) const {
    return rows && columns && batch ? (batch - 1) * stride + (rows - 1) * row + columns : 0;
  }
  void check(int64_t batch) const {
    need(rows <= 1 || row >= columns, "gemm: rows of ", name, " must be at least ", columns, " elements apart, got ",
         row);
    need(batch <= 1 || stride >= 0, "gemm: matrices of ", name, " must be 0 or more elements apart, got ", stride);
  }
};

class Gemm final : public LibraryCall {
 public:
  Gemm(Process& process, int device, const GemmDesc& desc);
  size_t room() const override { return room_; }
  void run(const ab_queue& queue, const ab_operand* operands, int count, void* workspace) const override;

 private:
  using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;
  using Algorithm = std::optional<cublasLtMatmulAlgo_t>;

  bool empty() const { return desc_.m == 0 || desc_.n == 0 || desc_.batch == 0; }
  bool biased() const { return (desc_.epilogue & device::kGemmBias) != 0; }
  int operands() const { return biased() ? 4 : 3; }
  Layout layout(const Stored& stored) const;
  template <class T> void set(cublasLtMatmulDescAttributes_t what, T value) const {
    well(lt_.cublasLtMatmulDescSetAttribute(call_.get(), what, &value, sizeof value), "gemm");
  }
  void describe();
  Algorithm choose(uint32_t alignment);
  cublasStatus_t multiply(const ab_queue& queue, const ab_operand* operands, const cublasLtMatmulAlgo_t& algorithm,
                          void* workspace) const;
  void scale_only(const ab_queue& queue, void* out) const;

  const GemmDesc desc_;
  const Types types_;
  const Stored stored_[4];  // a, b, out, bias
  const CublasLt& lt_;
  const std::shared_ptr<cublasLtContext> handle_;
  Owned<cublasLtMatmulDescOpaque_t> call_;
  mutable std::mutex mutex_;  // of call_, which holds the address of one run's bias
  Layout layouts_[3];
  size_t room_ = 0;
  Algorithm aligned_, unaligned_;  // for operands that begin at multiples of 16 bytes, and others
};

constexpr uint32_t kAlignment = 16;                 // of the widest load of a GPU
constexpr uint64_t kMostRoom = uint64_t{32} << 20;  // what NVIDIA recommends from compute capability 9.0 on

// By the bits of GemmEpilogues: the bias is added first, as there.
constexpr cublasLtEpilogue_t kEpilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
                                             CUBLASLT_EPILOGUE_RELU_BIAS};

void check_epilogue(const GemmDesc& desc) {
  need(desc.epilogue >= 0 && desc.epilogue < std::ssize(kEpilogues), "gemm: epilogue must be from 0 to ",
       std::ssize(kEpilogues) - 1, ", got ", desc.epilogue);
  const bool offered = desc.k > 0 && desc.beta == 0 && desc.dtype != AB_FLOAT64;
  if (desc.epilogue && !offered) {
    fail(AB_UNSUPPORTED, "gemm: epilogue ", desc.epilogue, " with k ", desc.k, ", beta ", desc.beta, ", dtype ",
         desc.dtype);
  }
}

Gemm::Gemm(Process& process, int device, const GemmDesc& desc)
    : desc_(desc),
      types_(types_of(desc.dtype, process.setting("enable_cublas_tensor_op_math", false))),
      stored_{
          {"a", desc.transposed_a ? desc.k : desc.m, desc.transposed_a ? desc.m : desc.k, desc.row_a, desc.stride_a},
          {"b", desc.transposed_b ? desc.n : desc.k, desc.transposed_b ? desc.k : desc.n, desc.row_b, desc.stride_b},
          {"out", desc.m, desc.n, desc.row_out, desc.stride_out},
          {"bias", 1, desc.n, desc.n, 0}},
      lt_(cublas_lt()),
      handle_(cublas_handle(process, device)),
      call_(nullptr, lt_.cublasLtMatmulDescDestroy),
      layouts_{{nullptr, lt_.cublasLtMatrixLayoutDestroy},
               {nullptr, lt_.cublasLtMatrixLayoutDestroy},
               {nullptr, lt_.cublasLtMatrixLayoutDestroy}} {
  need(desc.m >= 0 && desc.n >= 0 && desc.k >= 0 && desc.batch >= 0, "gemm: extents must be 0 or more");
  for (const Stored& stored : stored_) stored.check(desc.batch);
  if (desc.batch > INT32_MAX) fail(AB_UNSUPPORTED, "gemm: of ", desc.batch, " matrices");
  if (desc.k == 0 && desc.beta != 0 && desc.beta != 1) fail(AB_UNSUPPORTED, "gemm: k 0 with beta ", desc.beta);
  check_epilogue(desc);
  if (empty() || desc.k == 0) return;
  describe();
  for (int k = 0; k < 3; ++k) layouts_[k] = layout(stored_[k]);
  aligned_ = choose(kAlignment);
  unaligned_ = choose(static_cast<uint32_t>(types_.bytes));
  if (!aligned_ && !unaligned_) {
    fail(AB_UNSUPPORTED, "gemm: cuBLASLt has no algorithm for m ", desc.m, ", n ", desc.n, ", k ", desc.k, ", dtype ",
         desc.dtype, ", epilogue ", desc.epilogue);
  }
}

void Gemm::describe() {
  cublasLtMatmulDesc_t call = nullptr;
  well(lt_.cublasLtMatmulDescCreate(&call, types_.compute, types_.scale), "gemm");
  call_.reset(call);
  set(CUBLASLT_MATMUL_DESC_TRANSA, desc_.transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, desc_.transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (desc_.epilogue) set(CUBLASLT_MATMUL_DESC_EPILOGUE, kEpilogues[desc_.epilogue]);
}

Gemm::Layout Gemm::layout(const Stored& stored) const {
  cublasLtMatrixLayout_t made = nullptr;
  well(lt_.cublasLtMatrixLayoutCreate(&made, types_.data, static_cast<uint64_t>(stored.columns),
                                      static_cast<uint64_t>(stored.rows), std::max(stored.row, stored.columns)),
       "gemm");
  Layout layout(made, lt_.cublasLtMatrixLayoutDestroy);
  const auto batch = static_cast<int32_t>(desc_.batch);
  if (batch == 1) return layout;
  well(lt_.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "gemm");
  well(lt_.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stored.stride,
                                            sizeof stored.stride),
       "gemm");
  return layout;
}

// The bias is known when the product runs; what is chosen for counts on the alignment of its address alone.
Gemm::Algorithm Gemm::choose(uint32_t alignment) {
  if (biased()) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(uintptr_t{alignment}));
  cublasLtMatmulPreference_t made = nullptr;
  well(lt_.cublasLtMatmulPreferenceCreate(&made), "gemm");
  const Owned<cublasLtMatmulPreferenceOpaque_t> preference(made, lt_.cublasLtMatmulPreferenceDestroy);
  well(lt_.cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kMostRoom,
                                                sizeof kMostRoom),
       "gemm");
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    well(lt_.cublasLtMatmulPreferenceSetAttribute(made, which, &alignment, sizeof alignment), "gemm");
  }
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      lt_.cublasLtMatmulAlgoGetHeuristic(handle_.get(), call_.get(), layouts_[1].get(), layouts_[0].get(),
                                         layouts_[2].get(), layouts_[2].get(), made, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && !found)) return {};
  well(status, "gemm");
  room_ = std::max(room_, best.workspaceSize);
  return best.algo;
}

bool aligned(const ab_operand& operand) { return reinterpret_cast<uintptr_t>(operand.address) % kAlignment == 0; }

void Gemm::run(const ab_queue& queue, const ab_operand* operands, int count, void* workspace) const {
  need(count == this->operands(), "gemm takes ", this->operands(), " operands, got ", count);
  for (int k = 0; k < count; ++k) {
    const auto needed = static_cast<uint64_t>(stored_[k].elements(desc_.batch) * types_.bytes);
    if (operands[k].bytes < needed) [[unlikely]] {
      fail(AB_INVALID_ARGUMENT, "gemm: ", stored_[k].name, " must have ", needed, " bytes, got ", operands[k].bytes);
    }
  }
  if (empty()) return;
  if (desc_.k == 0) return scale_only(queue, operands[2].address);
  const bool all = std::all_of(operands, operands + count, aligned);
  const Algorithm& algorithm = all && aligned_ ? aligned_ : unaligned_;
  if (!algorithm) fail(AB_UNSUPPORTED, "gemm: cuBLASLt has no algorithm for operands that are not aligned to 16 bytes");
  const cublasStatus_t status = multiply(queue, operands, *algorithm, workspace);
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  library_failed(queue, status_of(status), said("gemm: cuBLASLt: ", lt_.cublasLtGetStatusString(status)));
}

cublasStatus_t Gemm::multiply(const ab_queue& queue, const ab_operand* operands, const cublasLtMatmulAlgo_t& algorithm,
                              void* workspace) const {
  std::unique_lock<std::mutex> lock;
  if (biased()) {
    lock = std::unique_lock(mutex_);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(operands[3].address));
  }
  const float alpha = static_cast<float>(desc_.alpha), beta = static_cast<float>(desc_.beta);
  const bool wide = types_.scale == CUDA_R_64F;
  const void* a = wide ? static_cast<const void*>(&desc_.alpha) : &alpha;
  const void* b = wide ? static_cast<const void*>(&desc_.beta) : &beta;
  void* out = operands[2].address;
  return lt_.cublasLtMatmul(handle_.get(), call_.get(), a, operands[1].address, layouts_[1].get(), operands[0].address,
                            layouts_[0].get(), b, out, layouts_[2].get(), out, layouts_[2].get(), &algorithm,
                            room_ ? workspace : nullptr, room_, queue.stream);
}

// A sum of nothing is 0.
void Gemm::scale_only(const ab_queue& queue, void* out) const {
  if (desc_.beta == 1) return;
  const auto bytes = static_cast<size_t>(types_.bytes);
  const auto row = static_cast<size_t>(std::max(desc_.row_out, desc_.n)) * bytes;
  for (int64_t matrix = 0; matrix < desc_.batch; ++matrix) {
    char* at = static_cast<char*>(out) + matrix * desc_.stride_out * types_.bytes;
    well(
        cudaMemset2DAsync(at, row, 0, static_cast<size_t>(desc_.n) * bytes, static_cast<size_t>(desc_.m), queue.stream),
        "gemm");
  }
}

}  // namespace

std::unique_ptr<LibraryCall> plan_gemm(Process& process, int device, const void* desc, size_t size) {
  return std::make_unique<Gemm>(process, device, described<GemmDesc>("gemm", desc, size));
}

}  // namespace anabranch::cuda
