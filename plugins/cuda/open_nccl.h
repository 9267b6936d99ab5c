// NCCL, opened when it is first needed.
#pragma once
#include <nccl.h>

#include "../failure.h"

namespace anabranch::cuda {

using namespace plugin;

struct Nccl {
  decltype(&::ncclGetVersion) ncclGetVersion;
  decltype(&::ncclGetErrorString) ncclGetErrorString;
  decltype(&::ncclGetLastError) ncclGetLastError;
  decltype(&::ncclGetUniqueId) ncclGetUniqueId;
  decltype(&::ncclCommInitRank) ncclCommInitRank;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError;
  decltype(&::ncclCommDestroy) ncclCommDestroy;
  decltype(&::ncclCommAbort) ncclCommAbort;
  decltype(&::ncclGroupStart) ncclGroupStart;
  decltype(&::ncclGroupEnd) ncclGroupEnd;
  decltype(&::ncclAllReduce) ncclAllReduce;
  decltype(&::ncclReduce) ncclReduce;
  decltype(&::ncclBroadcast) ncclBroadcast;
  decltype(&::ncclAllGather) ncclAllGather;
  decltype(&::ncclReduceScatter) ncclReduceScatter;
};

const Nccl& nccl();  // Unavailable when it is not there

ab_status status_of(ncclResult_t result);
std::string text_of(ncclResult_t result, ncclComm_t comm);

template <class... Doing> void well(ncclResult_t result, ncclComm_t comm, const Doing&... doing) {
  if (result != ncclSuccess && result != ncclInProgress) [[unlikely]]
    fail(status_of(result), doing..., ": ", text_of(result, comm));
}

// The type and number of a collective's elements as NCCL needs them. Collectives that add nothing send types that NCCL
// does not know as bytes.
struct Elements {
  ncclDataType_t type;
  size_t count;
};
Elements elements_of(ab_collective what, int dtype, size_t count);

}  // namespace anabranch::cuda
