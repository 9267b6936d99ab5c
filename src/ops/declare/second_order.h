// Gradients of gradient ops, composed of existing ops. AB_GRAD(type) declares one of these with the op:
//
//   .grad(second_order::linear)                     Out is linear in the inputs: the forward op on their gradients
//   .grad(second_order::bilinear({"X", "Y"}))       a product of two inputs
//   .grad(second_order::diagonal)                   piecewise linear, element by element
//   .grad(second_order::through([](Ops& o) {        anything else: the gradient op as other ops, which are
//     o.is("X@GRAD", o.mul(o.in("Out@GRAD"), o.scale(o.in("X"), 2)));      differentiated instead
//   }))
//
// Compositions of ops have gradients of every order that those ops have.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "opdef/op_def.h"

namespace anabranch::second_order {

using Maker = std::function<void(GradContext&)>;

// X@GRAD = F'(Out@GRAD) where Out = F(X): the gradient of Out@GRAD is F of that of X@GRAD.
void linear(GradContext& g);

// Out = the elements of X in another shape.
void reshaped(GradContext& g);

// X@GRAD = Out@GRAD times a factor that does not depend on X: the gradient op itself, on the gradient of X@GRAD.
void diagonal(GradContext& g);

// Out = a product of two inputs, linear in each of them.
Maker bilinear(const char* x, const char* y);

// Builds the ops that replace a gradient op. Names are those of variables.
class Ops {
 public:
  using Args = std::vector<std::pair<std::string, std::vector<std::string>>>;
  explicit Ops(GradContext& g) : g_(g) {}

  std::string in(const std::string& slot) const { return g_.in(slot).at(0); }  // of the gradient op
  bool given(const std::string& slot) const;
  bool needed(const std::string& slot) const;  // whether this output has a gradient
  template <class T> const T& attr(std::string_view name) const { return g_.attr<T>(name); }
  int rank(const std::string& variable) const;  // of a variable of the gradient op
  int64_t extent(const std::string& variable, int axis) const;

  std::string make(const std::string& type, Args ins, AttrMap attrs = {}, const std::string& out = "Out");
  std::string unary(const char* type, const std::string& x) { return make(type, {{"X", {x}}}); }
  std::string binary(const char* type, const std::string& x, const std::string& y, int axis = -1);
  std::string add(const std::string& x, const std::string& y) { return binary("elementwise_add", x, y); }
  std::string sub(const std::string& x, const std::string& y) { return binary("elementwise_sub", x, y); }
  std::string mul(const std::string& x, const std::string& y) { return binary("elementwise_mul", x, y); }
  std::string div(const std::string& x, const std::string& y) { return binary("elementwise_div", x, y); }
  std::string scale(const std::string& x, double factor, double offset = 0);  // factor x + offset
  std::string square(const std::string& x) { return mul(x, x); }
  std::string sum(const std::string& x, const std::vector<int32_t>& axes, bool keep_dim);
  std::string mean(const std::string& x, const std::vector<int32_t>& axes, bool keep_dim);
  std::string positive(const std::string& x);                                // 1 where x > 0, else 0; a constant
  std::string larger(const std::string& x, const std::string& y, int axis);  // 1 where x > y, else 0; a constant
  // x times y, summed to the shape of `like`, which is broadcast at `axis`.
  std::string product_like(const char* side, const std::string& x, const std::string& y, const std::string& dout,
                           int axis);

  void is(const std::string& slot, const std::string& made);  // sets the result of the gradient op for a slot

 private:
  friend Maker through(std::function<void(Ops&)> fn);
  void differentiate();
  void run_back(const ir::OpRef& op);
  std::string joined(const std::string& made);
  std::string fresh();
  bool needs(const std::string& name) const;

  GradContext& g_;
  std::vector<ir::OpRef> forward_, backward_;
  std::set<std::string> made_, constant_, taken_;
  std::map<std::string, std::vector<std::string>> parts_;  // gradients of intermediate results
  int numbers_ = 0;
};

Maker through(std::function<void(Ops&)> fn);

}  // namespace anabranch::second_order
