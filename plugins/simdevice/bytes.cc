// Copies, fills and calls of the host.
#include <cstring>

#include "put.h"

namespace anabranch::simdevice {
namespace {

std::string place(int device) { return device == AB_HOST_MEMORY ? "the host" : said("device ", device); }

class CopyWork final : public Work {
 public:
  explicit CopyWork(const CopyArgs& args) : a_(args) {}

  std::string what() const override {
    return said("copy of ", a_.bytes, " bytes from ", place(a_.from_device), " to ", place(a_.to_device));
  }

  void put(Machine& machine, ab_queue&, Item& item) const override {
    if (a_.from_device == AB_HOST_MEMORY) {
      item.summed = machine.pinned.add(range(a_.from, false, item));
      if (item.summed) item.sum = sum_of(a_.from, a_.bytes);
    }
    if (a_.to_device == AB_HOST_MEMORY && machine.pinned.add(range(a_.to, true, item))) {
      poison(static_cast<char*>(a_.to), a_.bytes);  // so that a host that reads too early sees it
    }
  }

  void run(Running& running) const override {
    const char* from = a_.from_device == AB_HOST_MEMORY ? running.touch_pinned(a_.from, a_.bytes, AB_READ)
                                                        : running.touch(a_.from_device, a_.from, a_.bytes, AB_READ);
    char* to = a_.to_device == AB_HOST_MEMORY ? running.touch_pinned(a_.to, a_.bytes, AB_WRITE)
                                              : running.touch(a_.to_device, a_.to, a_.bytes, AB_WRITE);
    if (running.item().summed && sum_of(from, a_.bytes) != running.item().sum) {
      fail(AB_FAULT, "early reuse: pinned memory was written before ", *running.item().label, " had read it");
    }
    memcpy(to, from, a_.bytes);
  }

  void over(Machine& machine, Item& item) const override {
    if (a_.from_device == AB_HOST_MEMORY) machine.pinned.remove(range(a_.from, false, item));
    if (a_.to_device == AB_HOST_MEMORY && machine.pinned.remove(range(a_.to, true, item))) {
      poison(static_cast<char*>(a_.to), a_.bytes);
    }
  }

 private:
  Pinned::Range range(const void* p, bool writes, const Item& item) const {
    return {static_cast<const char*>(p), a_.bytes, writes, item.label};
  }

  const CopyArgs a_;
};

class FillWork final : public Work {
 public:
  FillWork(void* to, int byte, size_t bytes) : to_(to), byte_(byte), bytes_(bytes) {}
  std::string what() const override { return said("fill of ", bytes_, " bytes"); }
  void run(Running& running) const override { memset(running.touch(to_, bytes_, AB_WRITE), byte_, bytes_); }

 private:
  void* const to_;
  const int byte_;
  const size_t bytes_;
};

class CallWork final : public Work {
 public:
  CallWork(void (*fn)(void*, int), void* arg) : fn_(fn), arg_(arg) {}
  std::string what() const override { return "a call of the host"; }
  void run(Running&) const override { fn_(arg_, AB_OK); }
  void drop() const override { fn_(arg_, AB_FAULT); }

 private:
  void (*const fn_)(void*, int);
  void* const arg_;
};

void check_end(Machine& machine, const void* p, int device, size_t bytes) {
  if (device == AB_HOST_MEMORY) return machine.pinned.check(p, bytes);
  machine.check_device(device);
  need(machine.mapping().device_of(p) == device, "a copy of ", bytes, " bytes names an address that is not of device ",
       device);
}

}  // namespace

Item item_of(WorkPtr work) {
  Item item;
  item.work = std::move(work);
  return item;
}

Item item_of(Item::Kind kind, RecordPtr record) {
  Item item;
  item.kind = kind;
  item.record = std::move(record);
  return item;
}

Item copy_item(Machine& machine, const ab_queue& queue, const CopyArgs& args) {
  need(args.to_device == queue.device || args.from_device == queue.device, "a copy from ", place(args.from_device),
       " to ", place(args.to_device), " is put into ", queue.text());
  check_end(machine, args.to, args.to_device, args.bytes);
  check_end(machine, args.from, args.from_device, args.bytes);
  const char *to = static_cast<const char*>(args.to), *from = static_cast<const char*>(args.from);
  need(to + args.bytes <= from || from + args.bytes <= to, "a copy of ", args.bytes, " bytes overlaps itself");
  return item_of(std::make_shared<CopyWork>(args));
}

Item fill_item(Machine& machine, const ab_queue& queue, void* to, int byte, size_t bytes) {
  check_end(machine, to, queue.device, bytes);
  return item_of(std::make_shared<FillWork>(to, byte, bytes));
}

Item call_item(void (*fn)(void* arg, int status), void* arg) {
  need(fn != nullptr, "queue_call() got no function");
  return item_of(std::make_shared<CallWork>(fn, arg));
}

}  // namespace anabranch::simdevice
