// Serves the variables of a server and runs blocks of the program on received messages.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::listen_and_serv_op {
namespace {

constexpr const char* kAddress = "127.0.0.1:6164";

AB_OP(listen_and_serv)
    .doc(
        "Serves the variables of the scope until all workers have sent their completion. A received variable that "
        "grad_to_block_id names runs its block.")
    .in_list("X", "received gradients; in sync mode one per worker")
    .takes("X", Holds::kAnything)
    .attr<std::string>("endpoint", kAddress, "address to listen on; port 0: any free port")
    .attr<int32_t>("pserver_id", -1, "id of this server")
    .attr<std::vector<std::string>>("grad_to_block_id", {}, "GRADIENT:BLOCK pairs: the block that a gradient runs")
    .attr<int32_t>("distributed_mode", 0, "0 sync, 1 async, 2 half async, 3 geo")
    .attr<bool>("dc_asgd", false, "compensates gradients for their delay")
    .attr<std::vector<BlockRef>>("optimize_blocks", {}, "blocks that update parameters")
    .attr<std::vector<std::string>>("prefetch_var_name_to_block_id", {}, "IDS:BLOCK pairs: the block that fetches rows")
    .attr<std::vector<std::string>>("sparse_grad_to_param", {}, "GRADIENT:PARAMETER pairs of sparse gradients")
    .attr<std::vector<std::string>>("table_durability", {},
                                    "TABLE:LEVEL pairs: durability levels that override FLAGS_ps_durability")
    .attr<std::vector<std::string>>("job", {}, "WHAT: HOW lines that describe the job; workers must have the same")
    .attr<int32_t>("Fanin", 1, "trainers")
    .attr<int32_t>("checkpint_block_id", -1, "block that saves; -1: none")
    .attr<int32_t>("lr_decay_block_id", -1, "block that computes learning rates; -1: none")
    .attr<int32_t>("rpc_get_thread_num", 1, "number of threads that answer requests for variables")
    .attr<int32_t>("rpc_send_thread_num", 1, "number of threads that receive gradients")
    .attr<int32_t>("rpc_prefetch_thread_num", 1, "number of threads that answer requests for rows")
    .effects(kTalks | kRunsBlock)
    .infer(keep_declared)
    .no_grad("it is a server")
    .cpu_any(not_here("Executor.run serves a program whose first block holds only this op"));

AB_OP(fl_listen_and_serv)
    .doc("Serves the variables of the scope to workers that send their parameters, and merges these.")
    .in_list("X", "received parameters, one per worker")
    .takes("X", Holds::kAnything)
    .attr<std::string>("endpoint", kAddress, "address to listen on; port 0: any free port")
    .attr<bool>("sync_mode", true, "waits for all workers")
    .attr<int32_t>("Fanin", 1, "trainers")
    .attr<std::vector<BlockRef>>("optimize_blocks", {}, "blocks that merge parameters")
    .effects(kTalks | kRunsBlock)
    .infer(keep_declared)
    .no_grad("it is a server")
    .cpu_any(not_here("listen_and_serv in GEO mode serves workers that send parameters"));

}  // namespace
}  // namespace anabranch::distributed::listen_and_serv_op
