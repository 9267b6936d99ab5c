// A failure of a user's callback, in any form that its language throws: it leaves the engine unchanged.
#pragma once
#include <exception>
#include <utility>

namespace anabranch {

class UserError : public std::exception {
 public:
  explicit UserError(std::exception_ptr cause) : cause_(std::move(cause)) {}
  const std::exception_ptr& cause() const { return cause_; }
  const char* what() const noexcept override { return "a function of the user failed"; }

 private:
  std::exception_ptr cause_;
};

}  // namespace anabranch
