// A call of a plug-in's library - a matrix product, a convolution - which is planned once per shape.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "opdef/device_context.h"

namespace anabranch {

class LibraryCall {
 public:
  explicit LibraryCall(std::string key) : key_(std::move(key)) {}
  // `desc`: the key's struct of ops/device/args.h.
  template <class Desc> void run(const DeviceContext& c, const Desc& desc, std::initializer_list<ab_operand> operands) {
    run(c, &desc, sizeof(desc), operands);
  }

 private:
  void run(const DeviceContext& c, const void* desc, size_t size, std::initializer_list<ab_operand> operands);
  void plan(const DeviceContext& c, const void* desc, size_t size);

  const std::string key_;
  std::vector<char> desc_;  // for which it is planned
  std::shared_ptr<ab_library> planned_;
  size_t room_ = 0;
};

inline ab_operand read_by(const Tensor& t) { return {const_cast<void*>(t.raw()), t.bytes(), AB_READ, 0}; }
inline ab_operand written_by(Tensor& t) { return {t.mutable_raw(), t.bytes(), AB_WRITE, 0}; }

}  // namespace anabranch
