// The objects to which the interface's pointers refer.
#pragma once
#include <nccl.h>

#include <memory>
#include <mutex>
#include <string>

#include "clock.h"
#include "library_call.h"

struct ab_queue {
  int device;
  std::string name;
  cudaStream_t stream = nullptr;

  std::string text() const { return anabranch::plugin::said("queue ", name, " of device ", device); }
  void set_mark(const char* text) {
    const std::lock_guard lock(mutex_);
    mark_ = text ? text : "";
  }
  std::string mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }

 private:
  mutable std::mutex mutex_;
  std::string mark_;
};

struct ab_event {
  int device;
  bool timed;
  cudaEvent_t event = nullptr;
  std::shared_ptr<const anabranch::cuda::Moment> since = nullptr;  // of the last record of a timed one
};

struct ab_library {
  int device;
  std::unique_ptr<anabranch::cuda::LibraryCall> call;
};

struct ab_graph {
  int device;
  cudaGraphExec_t graph = nullptr;
};

struct ab_comm {
  int device, rank, ranks;
  ncclComm_t comm = nullptr;  // null if creating it failed at the end of a group
};
