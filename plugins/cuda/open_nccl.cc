#include "open_nccl.h"

#include "open_library.h"

namespace anabranch::cuda {
namespace {

Nccl opened() {
  Nccl t{};
  open_library({"NCCL", "libnccl.so.2", "nvidia/nccl/lib", 22000}, [&t](Symbols& symbols) {
    symbols.AB_TAKE(t, ncclGetVersion)
        .AB_TAKE(t, ncclGetErrorString)
        .AB_TAKE(t, ncclGetLastError)
        .AB_TAKE(t, ncclGetUniqueId)
        .AB_TAKE(t, ncclCommInitRank)
        .AB_TAKE(t, ncclCommGetAsyncError)
        .AB_TAKE(t, ncclCommDestroy)
        .AB_TAKE(t, ncclCommAbort)
        .AB_TAKE(t, ncclGroupStart)
        .AB_TAKE(t, ncclGroupEnd)
        .AB_TAKE(t, ncclAllReduce)
        .AB_TAKE(t, ncclReduce)
        .AB_TAKE(t, ncclBroadcast)
        .AB_TAKE(t, ncclAllGather)
        .AB_TAKE(t, ncclReduceScatter);
    return [&t] {
      int version = 0;
      return t.ncclGetVersion(&version) == ncclSuccess ? version : 0;
    };
  });
  return t;
}

bool adds(ab_collective what) { return what != AB_BROADCAST && what != AB_ALL_GATHER; }

}  // namespace

const Nccl& nccl() {
  static const Nccl table = opened();
  return table;
}

ab_status status_of(ncclResult_t result) {
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage: return AB_INVALID_ARGUMENT;
    case ncclSystemError:
    case ncclRemoteError: return AB_UNAVAILABLE;
    default: return AB_INTERNAL;
  }
}

std::string text_of(ncclResult_t result, ncclComm_t comm) {
  const char* last = nccl().ncclGetLastError(comm);
  return said("NCCL: ", nccl().ncclGetErrorString(result), last && *last ? ": " : "", last ? last : "");
}

Elements elements_of(ab_collective what, int dtype, size_t count) {
  switch (dtype) {
    case AB_INT32: return {ncclInt32, count};
    case AB_INT64: return {ncclInt64, count};
    case AB_FLOAT16: return {ncclFloat16, count};
    case AB_FLOAT32: return {ncclFloat32, count};
    case AB_FLOAT64: return {ncclFloat64, count};
    case AB_UINT8: return {ncclUint8, count};
    case AB_INT8: return {ncclInt8, count};
    case AB_BFLOAT16: return {ncclBfloat16, count};
    case AB_BOOL:
    case AB_INT16: break;
    default: fail(AB_INVALID_ARGUMENT, "no dtype has the number ", dtype);
  }
  if (adds(what)) fail(AB_UNSUPPORTED, "NCCL does not put ", dtype == AB_BOOL ? "bools" : "int16s", " together");
  return {ncclUint8, dtype == AB_BOOL ? count : 2 * count};
}

}  // namespace anabranch::cuda
