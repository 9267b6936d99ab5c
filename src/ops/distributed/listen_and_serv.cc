// What a server does: it waits for messages and runs blocks of the program for them.
#include "ops/distributed/not_here.h"

namespace anabranch::distributed::listen_and_serv_op {
namespace {

constexpr const char* kAddress = "127.0.0.1:6164";

AB_OP(listen_and_serv)
    .doc(
        "Serves the variables of the scope until all trainers have said that they are done. What arrives under a name "
        "of grad_to_block_id runs that block.")
    .in_list("X", "what arrives: gradients, one of each trainer in sync mode")
    .takes("X", Holds::kAnything)
    .attr<std::string>("endpoint", kAddress, "address to listen at; port 0: a free one")
    .attr<int32_t>("pserver_id", -1, "number of this server")
    .attr<std::vector<std::string>>("grad_to_block_id", {}, "GRADIENT:BLOCK, the block that a gradient runs")
    .attr<int32_t>("distributed_mode", 0, "0 sync, 1 async, 2 half async, 3 geo")
    .attr<bool>("dc_asgd", false, "gradients are corrected for their age")
    .attr<std::vector<BlockRef>>("optimize_blocks", {}, "blocks that update parameters")
    .attr<std::vector<std::string>>("prefetch_var_name_to_block_id", {}, "IDS:BLOCK, the block that finds rows")
    .attr<std::vector<std::string>>("sparse_grad_to_param", {}, "GRADIENT:PARAMETER of sparse gradients")
    .attr<std::vector<std::string>>("table_durability", {},
                                    "TABLE:LEVEL of tables that survive less or more than FLAGS_ps_durability says")
    .attr<int32_t>("Fanin", 1, "trainers")
    .attr<int32_t>("checkpint_block_id", -1, "the block that saves; -1: none")
    .attr<int32_t>("lr_decay_block_id", -1, "the block that computes learning rates; -1: none")
    .attr<int32_t>("rpc_get_thread_num", 1, "threads that answer requests for variables")
    .attr<int32_t>("rpc_send_thread_num", 1, "threads that take gradients")
    .attr<int32_t>("rpc_prefetch_thread_num", 1, "threads that answer requests for rows")
    .effects(kTalks | kRunsBlock)
    .infer(keep_declared)
    .no_grad("a server")
    .cpu_any(not_here("Executor.run serves a program whose first block is this op alone"));

AB_OP(fl_listen_and_serv)
    .doc("Serves the variables of the scope to trainers that each send their parameters, and joins those.")
    .in_list("X", "what arrives: parameters, one of each trainer")
    .takes("X", Holds::kAnything)
    .attr<std::string>("endpoint", kAddress, "address to listen at; port 0: a free one")
    .attr<bool>("sync_mode", true, "waits for all trainers")
    .attr<int32_t>("Fanin", 1, "trainers")
    .attr<std::vector<BlockRef>>("optimize_blocks", {}, "blocks that join parameters")
    .effects(kTalks | kRunsBlock)
    .infer(keep_declared)
    .no_grad("a server")
    .cpu_any(not_here("trainers that send parameters are served by listen_and_serv in GEO mode"));

}  // namespace
}  // namespace anabranch::distributed::listen_and_serv_op
