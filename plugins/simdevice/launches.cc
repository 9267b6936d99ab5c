// Kernels, library calls and collectives as work.
#include <cstring>

#include "lanes.h"
#include "put.h"

namespace anabranch::simdevice {
namespace {

class KernelWork final : public Work {
 public:
  KernelWork(ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room)
      : kernel_(kernel), args_(size), workspace_{workspace, room} {
    memcpy(args_.data(), args, size);
  }
  std::string what() const override { return kernel_->key; }
  void run(Running& running) const override {
    ManyLanes many(running.seed(), running.written(), kernel_->key);
    kernel_->run({workspace_, running.has_lanes() ? &many : nullptr}, args_.data());
  }

 private:
  const ab_kernel kernel_;
  std::vector<char> args_;
  const device::DeviceOut workspace_;
};

class LibraryWork final : public Work {
 public:
  LibraryWork(const ab_host& host, const ab_library& library, const ab_operand* operands, int count, void* workspace,
              size_t room)
      : host_(host), call_(library), operands_(operands, operands + count), workspace_(workspace), room_(room) {}

  std::string what() const override { return "library call " + call_.key; }

  void run(Running& running) const override {
    std::vector<void*> pointers;
    for (const ab_operand& o : operands_) {
      pointers.push_back(o.address ? running.touch(o.address, o.bytes, static_cast<ab_access>(o.access)) : nullptr);
    }
    void* workspace = workspace_ ? running.touch(workspace_, room_, AB_READ_WRITE) : nullptr;
    char text[1024] = "";
    const int status =
        host_.library_run(host_.self, call_.key.c_str(), call_.desc.data(), call_.desc.size(), pointers.data(),
                          static_cast<int>(pointers.size()), workspace, text, sizeof text);
    if (status != AB_OK) fail(AB_FAULT, text, " in ", *running.item().label);
  }

 private:
  const ab_host& host_;
  const ab_library call_;
  const std::vector<ab_operand> operands_;
  void* const workspace_;
  const size_t room_;
};

// Runs by itself only when the other ranks never will: its result is any values then.
class CollectiveWork final : public Work {
 public:
  CollectiveWork(ab_comm& comm, const Spec& spec, const void* send, void* recv)
      : comm_(comm), spec_(spec), send_(send), recv_(recv), rank_(comm.rank) {}

  std::string what() const override { return said("rank ", rank_, "'s ", spec_.text()); }

  void put(Machine& machine, ab_queue& queue, Item& item) const override {
    machine.comms.post(item, machine.comms.handles.check(&comm_), queue, spec_, send_, recv_);
  }

  void run(Running& running) const override {
    const size_t bytes = running.item().round->recv_bytes(rank_);
    if (bytes) poison(running.touch(recv_, bytes, AB_WRITE), bytes);
  }

 private:
  ab_comm& comm_;
  const Spec spec_;
  const void* const send_;
  void* const recv_;
  const int rank_;
};

}  // namespace

Item kernel_item(ab_kernel kernel, const void* args, size_t size, void* workspace, size_t room) {
  need(size == kernel->args_size, "kernel ", kernel->key, " takes args of ", kernel->args_size, " bytes, got ", size);
  const size_t needed = kernel->room ? kernel->room(args) : 0;
  need(needed == 0 || (workspace && room >= needed), "kernel ", kernel->key, " needs ", needed,
       " bytes of workspace, got ", workspace ? room : 0);
  return item_of(std::make_shared<KernelWork>(kernel, args, size, workspace, room));
}

Item library_item(const ab_host& host, const ab_library& library, const ab_operand* operands, int count,
                  void* workspace, size_t room) {
  need(count >= 0 && (operands || !count), "operands must not be null, and their count not below 0, got ", count);
  for (int i = 0; i < count; ++i) {
    need(operands[i].access >= AB_READ && operands[i].access <= AB_ACCUMULATE, "operand ", i, " of ", library.key,
         " must have an access of ab_access, got ", operands[i].access);
  }
  need(library.room == 0 || (workspace && room >= library.room), library.key, " needs ", library.room,
       " bytes of workspace, got ", workspace ? room : 0);
  return item_of(std::make_shared<LibraryWork>(host, library, operands, count, workspace, room));
}

Item collective_item(ab_comm& comm, const Spec& spec, const void* send, void* recv) {
  Item item = item_of(std::make_shared<CollectiveWork>(comm, spec, send, recv));
  item.kind = Item::Kind::kCollective;
  return item;
}

void begin_parts(Round& round, const std::vector<std::unique_ptr<Running>>& parts) {
  SharedComm& shared = *round.group->shared;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) continue;
    const int rank = static_cast<int>(i);
    const size_t out = round.send_bytes(rank);
    if (out) memcpy(shared.payload(rank, round.number), parts[i]->touch(round.parts[i].send, out, AB_READ), out);
  }
  for (size_t i = 0; i < parts.size(); ++i) {  // of one process all together
    if (parts[i]) shared.begin(static_cast<int>(i), round.number, round.spec);
  }
}

void run_parts(const Round& round, const std::vector<std::unique_ptr<Running>>& parts) {
  std::vector<const char*> send(parts.size());
  std::vector<char*> recv(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const int rank = static_cast<int>(i);
    const size_t out = round.send_bytes(rank), in = round.recv_bytes(rank);
    if (out && round.begun) send[i] = round.group->shared->payload(rank, round.number);
    if (out && !round.begun) send[i] = parts[i]->touch(round.parts[i].send, out, AB_READ);
    if (in && parts[i]) recv[i] = parts[i]->touch(round.parts[i].recv, in, AB_WRITE);
  }
  reduce_round(round, send, recv);
  for (const auto& part : parts) {
    if (part) part->check_zones();
  }
}

}  // namespace anabranch::simdevice
