// The NCCL calls that collectives become, by a library that records them.
#include <nccl.h>

#include "harness.h"
#include "loaded.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;

const Loaded& library() {
  static const Loaded loaded("/libnccl.so.2");
  return loaded;
}

class CudaComms : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    library().function<void()>("fake_nccl_reset")();
  }
  static std::string calls() { return library().function<const char*()>("fake_nccl_calls")(); }
  static void fail_nccl(ncclResult_t result, bool later = false) {
    library().function<void(int, int)>("fake_nccl_fail")(result, later);
  }
  static ab_comm* join(int device, int rank, int ranks) {
    char id[128];
    ab_comm* comm = nullptr;
    EXPECT_EQ(api.comm_id(id), AB_OK) << last_error();
    EXPECT_EQ(api.comm_new(device, id, rank, ranks, &comm), AB_OK) << last_error();
    return comm;
  }
};

TEST_F(CudaComms, RanksOfOneThreadAreMadeInAGroup) {
  Sim sim;
  AB_WELL(api.comm_group(1));
  ab_comm *zero = join(0, 0, 2), *one = join(1, 1, 2);
  EXPECT_EQ(fake::state().current, 1);
  AB_WELL(api.comm_group(0));
  EXPECT_EQ(calls(), "group; id; rank 0 of 2; id; rank 1 of 2; end; ");
  AB_WELL(api.comm_check(zero, nullptr));
  AB_WELL(api.comm_free(zero, 0));
  AB_WELL(api.comm_free(one, 1));
  EXPECT_THAT(calls(), HasSubstr("destroy; abort; "));
  AB_WELL(api.close());
}

TEST_F(CudaComms, RunsEachCollective) {
  Sim sim;
  ab_comm* comm = join(0, 0, 2);
  ab_queue* q = sim.queue("comm");
  const auto run = [&](ab_collective what, int dtype, int root) {
    library().function<void()>("fake_nccl_reset")();
    EXPECT_EQ(api.comm_run(comm, q, what, nullptr, nullptr, 5, dtype, root), AB_OK) << last_error();
    return calls();
  };
  const auto noted = [](const char* what, int count, ncclDataType_t type, int last) {
    return std::string(what) + " " + std::to_string(count) + " of " + std::to_string(type) + " by " +
           std::to_string(last) + "; ";
  };
  EXPECT_EQ(run(AB_ALL_REDUCE_SUM, AB_FLOAT32, 9), noted("all reduce", 5, ncclFloat32, ncclSum));
  EXPECT_EQ(run(AB_ALL_REDUCE_MAX, AB_FLOAT64, 9), noted("all reduce", 5, ncclFloat64, ncclMax));
  EXPECT_EQ(run(AB_ALL_REDUCE_MIN, AB_INT64, 9), noted("all reduce", 5, ncclInt64, ncclMin));
  EXPECT_EQ(run(AB_ALL_REDUCE_PROD, AB_BFLOAT16, 9), noted("all reduce", 5, ncclBfloat16, ncclProd));
  EXPECT_EQ(run(AB_REDUCE_SUM, AB_FLOAT16, 1), noted("reduce", 5, ncclFloat16, 1));
  EXPECT_EQ(run(AB_BROADCAST, AB_INT32, 1), noted("broadcast", 5, ncclInt32, 1));
  EXPECT_EQ(run(AB_ALL_GATHER, AB_UINT8, 9), noted("gather", 5, ncclUint8, 0));
  EXPECT_EQ(run(AB_REDUCE_SCATTER, AB_INT8, 9), noted("scatter", 5, ncclInt8, ncclSum));
  EXPECT_EQ(run(AB_BROADCAST, AB_INT16, 0), noted("broadcast", 10, ncclUint8, 0));
  EXPECT_EQ(run(AB_ALL_GATHER, AB_BOOL, 0), noted("gather", 5, ncclUint8, 0));
}

TEST_F(CudaComms, RefusesWhatDoesNotFit) {
  Sim sim;
  ab_comm* comm = join(0, 0, 2);
  ab_queue *q = sim.queue("comm"), *other = sim.queue("comm", 1);
  const auto run = [&](ab_queue* queue, ab_collective what, int dtype, int root) {
    return api.comm_run(comm, queue, what, nullptr, nullptr, 5, dtype, root);
  };
  AB_FAILS(run(other, AB_ALL_REDUCE_SUM, AB_FLOAT32, 0), AB_INVALID_ARGUMENT,
           "rank 0 is on device 0, got a queue of device 1");
  AB_FAILS(run(q, AB_BROADCAST, AB_FLOAT32, 2), AB_INVALID_ARGUMENT, "root must be from 0 to 1, got 2");
  AB_FAILS(run(q, AB_BROADCAST, 7, 0), AB_INVALID_ARGUMENT, "no dtype has the number 7");
  AB_FAILS(run(q, AB_ALL_REDUCE_SUM, AB_INT16, 0), AB_UNSUPPORTED, "NCCL does not put int16s together");
  char id[128] = {};
  ab_comm* none = nullptr;
  AB_FAILS(api.comm_new(0, id, 2, 2, &none), AB_INVALID_ARGUMENT, "rank must be from 0 to 1, got 2");
}

TEST_F(CudaComms, ReportsALostRank) {
  Sim sim;
  ab_comm* comm = join(0, 0, 2);
  int failed = 5;
  fail_nccl(ncclInProgress, true);
  AB_WELL(api.comm_check(comm, &failed));
  fail_nccl(ncclRemoteError, true);
  AB_FAILS(api.comm_check(comm, &failed), AB_UNAVAILABLE, "rank 0 of 2: NCCL: remote error: socket closed by peer");
  EXPECT_EQ(failed, -1);
  AB_WELL(api.comm_free(comm, 1));
}

TEST_F(CudaComms, FailuresOfCallsAreReported) {
  Sim sim;
  ab_queue* q = sim.queue("comm");
  char id[128];
  AB_WELL(api.comm_id(id));
  ab_comm* comm = nullptr;
  fail_nccl(ncclSystemError);
  AB_FAILS(api.comm_new(0, id, 1, 2, &comm), AB_UNAVAILABLE, "rank 1 of 2: NCCL: some error: socket closed by peer");
  EXPECT_EQ(comm, nullptr);
  comm = join(0, 0, 1);
  fail_nccl(ncclInvalidUsage);
  AB_FAILS(api.comm_group(0), AB_INVALID_ARGUMENT, "ending a group: NCCL");
  fail_nccl(ncclUnhandledCudaError);
  AB_FAILS(api.comm_run(comm, q, AB_ALL_REDUCE_SUM, nullptr, nullptr, 1, AB_FLOAT32, 0), AB_INTERNAL,
           "NCCL: some error");
  fail_nccl(ncclUnhandledCudaError);
  fail_next("cudaStreamQuery", cudaErrorIllegalAddress);
  AB_FAILS(api.comm_run(comm, q, AB_ALL_REDUCE_SUM, nullptr, nullptr, 1, AB_FLOAT32, 0), AB_FAULT, "an illegal access");
  AB_WELL(api.comm_free(comm, 0));
  EXPECT_THAT(calls(), HasSubstr("abort"));
}

}  // namespace
}  // namespace anabranch::cuda
