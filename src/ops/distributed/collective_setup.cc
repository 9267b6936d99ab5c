// Rings of processes, made by the startup program before anything is computed together.
#include "ops/declare/attr_checks.h"
#include "ops/distributed/not_here.h"

namespace anabranch::distributed {
namespace {

constexpr const char* kSetUp = "connects processes";

AB_OP(c_gen_nccl_id)
    .doc("Out = the name of a ring, made by the first process and given to the others.")
    .out("Out", "raw")
    .attr<int32_t>("rank", 0, "number of this process", at_least<int32_t>("rank", 0))
    .attr<std::string>("endpoint", "", "address of this process")
    .attr<std::vector<std::string>>("other_endpoints", {}, "addresses of the others")
    .attr<int32_t>("ring_id", 0, "the group of processes", at_least<int32_t>("ring_id", 0))
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(gen_nccl_id)
    .doc("NCCLID = the name of the ring of all trainers, made by the first and given to the others.")
    .out("NCCLID", "raw")
    .attr<std::string>("endpoint", "", "address of this trainer")
    .attr<std::vector<std::string>>("endpoint_list", {}, "addresses of the others, in older programs")
    .attr<std::vector<std::string>>("trainers", {}, "addresses of all trainers")
    .attr<int32_t>("trainer_id", 0, "number of this trainer", at_least<int32_t>("trainer_id", 0))
    .attr<int32_t>("nccl_comm_num", 1, "rings", at_least<int32_t>("nccl_comm_num", 1))
    .attr<bool>("use_hierarchical_allreduce", false, "sums within machines first")
    .attr<int32_t>("hierarchical_allreduce_inter_nranks", 1, "trainers of one machine")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(c_comm_init)
    .doc("Joins the ring whose name is X.")
    .in("X", "raw, the name of the ring")
    .takes("X", Holds::kAnything)
    .required_attr("nranks", AttrType::kInt, "processes in the ring")
    .required_attr("rank", AttrType::kInt, "number of this process")
    .required_attr("ring_id", AttrType::kInt, "the group of processes")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(c_comm_init_all)
    .doc("Joins the devices of this process to one ring.")
    .attr<std::vector<int32_t>>("devices", {}, "numbers of the devices; none: all")
    .attr<int32_t>("ring_id", 0, "the group of devices", at_least<int32_t>("ring_id", 0))
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(not_here(kSumsOfProcesses));

}  // namespace
}  // namespace anabranch::distributed
