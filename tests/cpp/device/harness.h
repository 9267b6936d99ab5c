// The simulated device as tests use it: opened with settings, freed and closed at the end in any case.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "ops/device/args.h"

extern "C" const ab_device_api* anabranch_device_1();

namespace anabranch::device {

inline const ab_device_api& api = *anabranch_device_1();

inline std::string last_error() {
  char text[2048];
  api.last_error(text, sizeof text);
  return text;
}

#define AB_WELL(call) ASSERT_EQ(call, AB_OK) << last_error()

// A call that fails with `status` and a text that has `part` in it.
#define AB_FAILS(call, status, part)                     \
  do {                                                   \
    EXPECT_EQ(call, status);                             \
    EXPECT_THAT(last_error(), testing::HasSubstr(part)); \
  } while (0)

using Flags = std::map<std::string, std::string>;

inline Flags seeded(uint64_t seed, const std::string& order = "random") {
  return {{"simdevice_seed", std::to_string(seed)}, {"simdevice_order", order}};
}

// Settings under which a result must be the same, and a fault must be found.
inline std::vector<Flags> all_orders(uint64_t seeds = 10) {
  std::vector<Flags> all{seeded(0, "earliest"), seeded(0, "latest")};
  for (uint64_t seed = 0; seed < seeds; ++seed) all.push_back(seeded(seed));
  for (uint64_t seed = 0; seed < 3; ++seed) all.push_back(seeded(seed, "starved"));
  return all;
}

class Sim {
 public:
  explicit Sim(Flags flags = {}, int devices = 2) : flags_(std::move(flags)) {
    flags_.emplace("simdevice_bytes", "1048576");
    flags_.emplace("simdevice_devices", std::to_string(devices));
    flags_.emplace("simdevice_patience_ms", "50");
    host_.size = sizeof host_;
    host_.self = this;
    host_.setting = [](void* self, const char* name) -> const char* {
      const Flags& known = static_cast<Sim*>(self)->flags_;
      const auto found = known.find(name);
      return found == known.end() ? nullptr : found->second.c_str();
    };
    EXPECT_EQ(api.open(&host_, &count_), AB_OK) << last_error();
  }
  ~Sim() { api.close(); }
  Sim(const Sim&) = delete;
  Sim& operator=(const Sim&) = delete;

  ab_host& host() { return host_; }
  int count() const { return count_; }

  ab_queue* queue(const char* name, int device = 0) {
    ab_queue* q = nullptr;
    EXPECT_EQ(api.queue_new(device, 0, name, &q), AB_OK) << last_error();
    return q;
  }
  ab_event* event(int device = 0) {
    ab_event* e = nullptr;
    EXPECT_EQ(api.event_new(device, 0, &e), AB_OK) << last_error();
    return e;
  }
  ab_event* recorded(ab_queue* queue, int device = 0) {
    ab_event* e = event(device);
    EXPECT_EQ(api.event_record(e, queue), AB_OK) << last_error();
    return e;
  }
  float* floats(size_t n, int device = 0) {
    void* p = nullptr;
    EXPECT_EQ(api.allocate(device, n * sizeof(float), &p), AB_OK) << last_error();
    return static_cast<float*>(p);
  }
  float* pinned(size_t n) {
    void* p = nullptr;
    EXPECT_EQ(api.allocate_pinned(n * sizeof(float), &p), AB_OK) << last_error();
    return static_cast<float*>(p);
  }
  // The status of all that was put into the queue so far.
  int finish(ab_queue* queue, int device = 0, int64_t within_ms = AB_FOREVER) {
    ab_event* e = event(device);
    const int status = api.event_record(e, queue);
    return status ? status : api.event_wait(e, within_ms);
  }
  // The contents of device memory, copied by a separate queue.
  std::vector<float> read(const float* p, size_t n, int device = 0) {
    ab_queue* q = queue("read", device);
    float* to = pinned(n);
    EXPECT_EQ(api.copy(q, to, AB_HOST_MEMORY, p, device, n * sizeof(float)), AB_OK) << last_error();
    EXPECT_EQ(finish(q, device), AB_OK) << last_error();
    return {to, to + n};
  }

 private:
  Flags flags_;
  ab_host host_{};
  int count_ = 0;
};

inline ab_kernel kernel(const char* key) {
  ab_kernel found = nullptr;
  EXPECT_EQ(api.kernel_find(key, &found), AB_OK) << last_error();
  return found;
}

// y = x * scale + offset; x null: y = offset.
inline int scale(ab_queue* queue, const float* x, float* y, size_t n, double scale, double offset) {
  MapArgs args{{x, x ? n * sizeof(float) : 0}, {y, n * sizeof(float)}, static_cast<int64_t>(n), {scale, offset}};
  return api.launch(queue, kernel("test/scale/f32"), &args, sizeof args, nullptr, 0);
}

}  // namespace anabranch::device
