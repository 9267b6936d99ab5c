// The function that runs a node in each step, with its captures. A plan's kernels are in the plan's array, so that a
// step reads memory sequentially; with std::function each would wait for a heap block.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace anabranch {

class DeviceContext;
class KernelContext;

// Whether a kernel runs on the host: one of a device takes a DeviceContext.
template <class F> inline constexpr bool kOnHost = std::is_invocable_v<std::decay_t<F>&, KernelContext&>;
template <class F> inline constexpr bool kOnDevice = std::is_invocable_v<std::decay_t<F>&, const DeviceContext&>;

class Kernel {
 public:
  static constexpr size_t kInline = 80;  // bytes of captures: ten handles; larger captures go to the heap

  Kernel() = default;
  // From any function; implicit, because factories return lambdas.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Kernel> && (kOnHost<F> || kOnDevice<F>))
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      Kernel(F&& f) {
    using Fn = std::decay_t<F>;
    using Context = std::conditional_t<kOnHost<F>, KernelContext, const DeviceContext>;
    if constexpr (fits<Fn>) {
      new (captured_) Fn(std::forward<F>(f));
      call_ = [](void* at, KernelContext& c) { (*static_cast<Fn*>(at))(context_as<Context>(c)); };
      if constexpr (!std::is_trivially_copyable_v<Fn>) care_ = &kCare<Fn>;
    } else {
      *this = Kernel([held = std::make_unique<Fn>(std::forward<F>(f))](Context& c) { (*held)(c); });
    }
  }
  Kernel(Kernel&& other) noexcept { move(other); }
  Kernel& operator=(Kernel&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    move(other);
    return *this;
  }
  ~Kernel() { destroy(); }

  explicit operator bool() const { return call_ != nullptr; }
  void operator()(KernelContext& c) const { call_(captured_, c); }

 private:
  template <class Context> static Context& context_as(KernelContext& c) {
    if constexpr (std::same_as<Context, KernelContext>) {
      return c;
    } else {
      return Context::of(c);
    }
  }
  // Moving and destroying captures that are not trivially copyable.
  struct Care {
    void (*move)(void* to, void* from);  // and destroys the source
    void (*destroy)(void* at);
  };
  template <class Fn>
  static constexpr Care kCare = {
      [](void* to, void* from) {
        new (to) Fn(std::move(*static_cast<Fn*>(from)));
        static_cast<Fn*>(from)->~Fn();
      },
      [](void* at) { static_cast<Fn*>(at)->~Fn(); },
  };
  template <class Fn>
  static constexpr bool fits = sizeof(Fn) <= kInline &&
                               alignof(Fn) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Fn>;

  void move(Kernel& other) noexcept {
    if (other.care_) {
      other.care_->move(captured_, other.captured_);
    } else {
      std::copy_n(other.captured_, kInline, captured_);
    }
    call_ = std::exchange(other.call_, nullptr);
    care_ = std::exchange(other.care_, nullptr);
  }
  void destroy() {
    if (care_) care_->destroy(captured_);
    call_ = nullptr;
    care_ = nullptr;
  }

  void (*call_)(void* captured, KernelContext& c) = nullptr;
  const Care* care_ = nullptr;
  alignas(std::max_align_t) mutable std::byte captured_[kInline] = {};
};

}  // namespace anabranch
