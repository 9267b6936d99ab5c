// libnccl.so.2 that notes what it is called for.
#include <nccl.h>

#include <string>

struct ncclComm {
  int rank;
};

namespace {

std::string calls;
ncclResult_t next = ncclSuccess, async = ncclSuccess;

ncclResult_t note(const std::string& what) {
  calls += what + "; ";
  const ncclResult_t result = next;
  next = ncclSuccess;
  return result;
}

std::string of(const char* name, size_t count, ncclDataType_t type, int last) {
  return std::string(name) + " " + std::to_string(count) + " of " + std::to_string(type) + " by " +
         std::to_string(last);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* fake_nccl_calls() { return calls.c_str(); }
void fake_nccl_reset() {
  calls.clear();
  async = next = ncclSuccess;
}
void fake_nccl_fail(int result, int asynchronous) { (asynchronous ? async : next) = static_cast<ncclResult_t>(result); }

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote error" : "some error";
}
const char* ncclGetLastError(ncclComm_t) { return "socket closed by peer"; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; ++i) id->internal[i] = static_cast<char>(i);
  return note("id");
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const bool whole = id.internal[127] == 127;
  const ncclResult_t result =
      note("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + (whole ? "" : "?"));
  if (result == ncclSuccess) *comm = new ncclComm{rank};
  return result;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = async;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return note("destroy");
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return note("abort");
}
ncclResult_t ncclGroupStart() { return note("group"); }
ncclResult_t ncclGroupEnd() { return note("end"); }
ncclResult_t ncclAllReduce(const void*, void*, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t, cudaStream_t) {
  return note(of("all reduce", n, t, op));
}
ncclResult_t ncclReduce(const void*, void*, size_t n, ncclDataType_t t, ncclRedOp_t, int root, ncclComm_t,
                        cudaStream_t) {
  return note(of("reduce", n, t, root));
}
ncclResult_t ncclBroadcast(const void*, void*, size_t n, ncclDataType_t t, int root, ncclComm_t, cudaStream_t) {
  return note(of("broadcast", n, t, root));
}
ncclResult_t ncclAllGather(const void*, void*, size_t n, ncclDataType_t t, ncclComm_t comm, cudaStream_t) {
  return note(of("gather", n, t, comm->rank));
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t,
                               cudaStream_t) {
  return note(of("scatter", n, t, op));
}

}  // extern "C"
#pragma GCC visibility pop
