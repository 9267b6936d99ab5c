#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/nn/attention.h"
#include "ops/nn/drop.h"
#include "ops/nn/softmax_block.h"

namespace anabranch::nn {
namespace {

constexpr int64_t kScores = 1 << 16;  // per chunk of rows: they stay in the L2 cache

// Layout of a mask with fewer extents than the scores: its stride along each axis of them.
struct BiasRows {
  const float* from = nullptr;
  std::vector<int64_t> extents, steps;  // of the axes before the last one
  int64_t column_step = 0;

  void lay(const float* data, const Shape& bias, const Shape& scores) {
    from = data;
    const int r = scores.rank();
    extents.resize(static_cast<size_t>(r - 1));
    steps.resize(static_cast<size_t>(r - 1));
    column_step = bias[r - 1] == 1 ? 0 : 1;
    int64_t step = bias[r - 1];
    for (int i = r - 2; i >= 0; --i) {
      extents[static_cast<size_t>(i)] = scores[i];
      steps[static_cast<size_t>(i)] = bias[i] == 1 ? 0 : step;
      step *= bias[i];
    }
  }
  // For row number `row` of all scores.
  const float* row(int64_t row) const {
    int64_t at = 0;
    for (size_t i = extents.size(); i-- > 0; row /= extents[i]) at += row % extents[i] * steps[i];
    return from + at;
  }
  void add(int64_t first, int64_t rows, int64_t keys, float* scores) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* bias = row(first + i);
      float* to = scores + i * keys;
      if (column_step) {
        simd::add(to, bias, to, keys);
      } else {
        simd::affine(to, 1.0f, *bias, to, keys);
      }
    }
  }
};

class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : q_(op.in("Q")),
        k_(op.in("K")),
        v_(op.in("V")),
        bias_(op.in("Bias")),
        out_(op.out("Out")),
        softmax_(op.out("Softmax")),
        mask_(op.out("Mask")),
        drop_(op.op()),
        key_(drop_key(op)),
        last_{op.attr<bool>("q_heads_last"), op.attr<bool>("k_heads_last"), op.attr<bool>("v_heads_last"),
              op.attr<bool>("out_heads_last")},
        alpha_(op.attr<float>("alpha")) {}

  void operator()(KernelContext& c) {
    const HeadMatrices q(c[q_].shape(), last_[0]), k(c[k_].shape(), last_[1]), v(c[v_].shape(), last_[2]),
        out(c[out_].shape(), last_[3]);
    if (out.count() * out.rows * out.cols == 0) return;
    float* to = c[out_].mutable_data<float>();
    if (k.rows == 0) {
      std::fill_n(to, c[out_].numel(), 0.0f);
      return;
    }
    const int64_t keys = k.rows, step = std::min(q.rows, std::max<int64_t>(16, kScores / keys)),
                  chunks = (q.rows + step - 1) / step, units = q.count() * chunks;
    const TaskSplit split(units);
    prepare(q, k, v, out, step, split.tasks);
    if (bias_) rows_.lay(c[bias_].data<float>(), c[bias_].shape(), scores_of(c[q_].shape(), keys));
    float* kept = needed<float>(c, softmax_);
    uint8_t* mask = drop_.draws() ? needed<uint8_t>(c, mask_) : nullptr;
    const float *from_q = c[q_].data<float>(), *from_k = c[k_].data<float>(), *from_v = c[v_].data<float>();
    const Philox random(with_step(key_, c));
    split.each(c, units, [&](int64_t task, int64_t unit) {
      const int64_t matrix = unit / chunks, chunk = unit % chunks, first = chunk * step;
      const int64_t rows = std::min(step, q.rows - first), begin = (matrix * q.rows + first) * keys;
      const Products& products = rows == step ? full_ : rest_;
      float* p = kept ? kept + begin : attention_room(0, step * keys);
      products.scores.run(task, from_q + q.at(matrix) + first * q.stride(), from_k + k.at(matrix), p);
      if (bias_) rows_.add(matrix * q.rows + first, rows, keys, p);
      softmax_blocks(p, rows, keys, int64_t{1}, p);
      float* weights = p;
      if (drop_.on) {
        weights = attention_room(1, step * keys);
        drop(random, drop_, begin, rows * keys, p, mask, weights);
      }
      products.means.run(task, weights, from_v + v.at(matrix), to + out.at(matrix) + first * out.stride());
    });
  }

 private:
  struct Products {
    TaskGemm scores, means;
    explicit Products(double alpha) : scores(alpha) {}
  };

  // The shape of the scores, with heads before rows.
  Shape scores_of(const Shape& q, int64_t keys) const {
    Shape s = heads_first(q, last_[0]);
    s.set(s.rank() - 1, keys);
    return s;
  }

  void prepare(const HeadMatrices& q, const HeadMatrices& k, const HeadMatrices& v, const HeadMatrices& out,
               int64_t step, int64_t tasks) {
    const auto both = [&](Products& p, int64_t rows) {
      p.scores.prepare({.m = rows, .n = k.rows, .k = q.cols, .trans_b = true, .ld_a = q.stride(), .ld_b = k.stride()},
                       tasks);
      p.means.prepare({.m = rows, .n = v.cols, .k = k.rows, .ld_b = v.stride(), .ld_c = out.stride()}, tasks);
    };
    both(full_, step);
    if (q.rows % step) both(rest_, q.rows % step);
  }

  In q_, k_, v_, bias_;
  Out out_, softmax_, mask_;
  DropOptions drop_;
  RandomKey key_;
  bool last_[4];
  double alpha_;
  BiasRows rows_;
  Products full_{alpha_}, rest_{alpha_};  // for chunks of `step` rows, and for the last one
};

class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : q_(op.in("Q")),
        k_(op.in("K")),
        v_(op.in("V")),
        softmax_(op.in("Softmax")),
        mask_(op.in("Mask")),
        dout_(op.in("Out@GRAD")),
        dq_(op.out("Q@GRAD")),
        dk_(op.out("K@GRAD")),
        dv_(op.out("V@GRAD")),
        drop_(op.op()),
        last_{op.attr<bool>("q_heads_last"), op.attr<bool>("k_heads_last"), op.attr<bool>("v_heads_last"),
              op.attr<bool>("out_heads_last")},
        of_q_(op.attr<float>("alpha")),
        of_k_(op.attr<float>("alpha")) {}

  void operator()(KernelContext& c) {
    const HeadMatrices q(c[q_].shape(), last_[0]), k(c[k_].shape(), last_[1]), v(c[v_].shape(), last_[2]),
        out(c[dout_].shape(), last_[3]);
    const int64_t rows = q.rows, keys = k.rows, scores = rows * keys;
    float *dq = needed<float>(c, dq_), *dk = needed<float>(c, dk_), *dv = needed<float>(c, dv_);
    if (q.count() == 0) return;
    if (scores == 0) return zeros(c);
    const TaskSplit split(q.count());
    prepare(q, k, v, out, split.tasks);
    const float *from_q = c[q_].data<float>(), *from_k = c[k_].data<float>(), *from_v = c[v_].data<float>(),
                *p = c[softmax_].data<float>(), *dout = c[dout_].data<float>();
    const uint8_t* mask = drop_.draws() && mask_ ? c[mask_].data<uint8_t>() : nullptr;
    split.each(c, q.count(), [&](int64_t task, int64_t m) {
      const float *own = p + m * scores, *from = dout + out.at(m);
      const uint8_t* kept = mask ? mask + m * scores : nullptr;
      float* room = attention_room(0, scores);
      if (dv) {
        const float* weights = own;
        if (drop_.on) {
          drop_again(drop_, kept, scores, own, room);
          weights = room;
        }
        of_v_.run(task, weights, from, dv + v.at(m));
      }
      if (!dq && !dk) return;
      of_scores_.run(task, from, from_v + v.at(m), room);
      if (drop_.on) drop_again(drop_, kept, scores, room, room);
      softmax_grad_blocks(own, room, rows, keys, int64_t{1}, room);
      if (dq) of_q_.run(task, room, from_k + k.at(m), dq + q.at(m));
      if (dk) of_k_.run(task, room, from_q + q.at(m), dk + k.at(m));
    });
  }

 private:
  void zeros(KernelContext& c) {
    for (const Out out : {dq_, dk_, dv_}) {
      if (float* to = needed<float>(c, out)) std::fill_n(to, c[out].numel(), 0.0f);
    }
  }

  void prepare(const HeadMatrices& q, const HeadMatrices& k, const HeadMatrices& v, const HeadMatrices& out,
               int64_t tasks) {
    of_scores_.prepare(
        {.m = q.rows, .n = k.rows, .k = v.cols, .trans_b = true, .ld_a = out.stride(), .ld_b = v.stride()}, tasks);
    of_v_.prepare({.m = k.rows, .n = v.cols, .k = q.rows, .trans_a = true, .ld_b = out.stride(), .ld_c = v.stride()},
                  tasks);
    of_q_.prepare({.m = q.rows, .n = q.cols, .k = k.rows, .ld_b = k.stride(), .ld_c = q.stride()}, tasks);
    of_k_.prepare({.m = k.rows, .n = q.cols, .k = q.rows, .trans_a = true, .ld_b = q.stride(), .ld_c = k.stride()},
                  tasks);
  }

  In q_, k_, v_, softmax_, mask_, dout_;
  Out dq_, dk_, dv_;
  DropOptions drop_;
  bool last_[4];
  TaskGemm of_q_, of_k_, of_v_, of_scores_;
};

}  // namespace

float* attention_room(int which, int64_t n) {
  thread_local std::vector<float> rooms[2];
  std::vector<float>& room = rooms[which];
  if (static_cast<int64_t>(room.size()) < n) room.resize(static_cast<size_t>(n));
  return room.data();
}

Kernel attention_forward(const KernelArgs& op) {
  return [run = std::make_shared<Forward>(op)](KernelContext& c) { (*run)(c); };
}
Kernel attention_backward(const KernelArgs& op) {
  return [run = std::make_shared<Backward>(op)](KernelContext& c) { (*run)(c); };
}

}  // namespace anabranch::nn
