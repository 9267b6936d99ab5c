// The work that functions of the interface put into queues.
#pragma once
#include <vector>

#include "comms.h"
#include "machine.h"
#include "ops/device/kernels.h"
#include "running.h"

namespace anabranch::simdevice {

Item item_of(WorkPtr work);
Item item_of(Item::Kind kind, RecordPtr record);

struct CopyArgs {
  void* to;
  int to_device;
  const void* from;
  int from_device;
  size_t bytes;
};
Item copy_item(Machine& machine, const ab_queue& queue, const CopyArgs& args);
Item fill_item(Machine& machine, const ab_queue& queue, void* to, int byte, size_t bytes);
Item call_item(void (*fn)(void* arg, int status), void* arg);
Item kernel_item(ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room);
Item library_item(const ab_host& host, const ab_library& library, const ab_operand* operands, int count,
                  void* workspace, size_t room);
Item collective_item(ab_comm& comm, const Spec& spec, const void* send, void* recv);

// All ranks of this process at once; parts by rank, null for those of other processes. Those of several processes begin
// before they run: what they give is copied to where the others read it.
void begin_parts(Round& round, const std::vector<std::unique_ptr<Running>>& parts);
void run_parts(const Round& round, const std::vector<std::unique_ptr<Running>>& parts);

}  // namespace anabranch::simdevice
