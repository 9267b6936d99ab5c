// Windows of words, their centres and negatives, as skip_gram and its gradient read them.
#pragma once
#include <algorithm>
#include <vector>

#include "core/row_locks.h"
#include "opdef/op_def.h"
#include "ops/kernels/ids.h"
#include "ops/loss/word_loops.h"

namespace anabranch::loss {

// The inputs of both kernels.
struct Handles {
  bool shared;
  In words, contexts, context, centre, negatives, present;
  explicit Handles(const KernelArgs& op)
      : shared(op.attr<bool>("shared")),
        words(op.in("Words")),
        contexts(op.in("Contexts")),
        context(op.in("Context")),
        centre(op.in("Centre")),
        negatives(op.in("Negatives")),
        present(op.in("Present")) {}
};

struct Converted {  // converts 32-bit ids to 64 bits
  Tensor context, centre, negatives;
};

template <class T> struct WordWindows {
  const T *words, *contexts, *present;
  const int64_t *context, *centre, *negatives;
  int64_t count, width, drawn, dim;
  bool shared, held;  // shared: negatives; held: rows are locked while they are copied

  WordWindows(KernelContext& c, const Handles& h, Converted* converted)
      : words(c[h.words].data<T>()),
        contexts(c[h.contexts].data<T>()),
        present(h.present ? c[h.present].data<T>() : nullptr),
        context(as_int64(c[h.context], &converted->context)),
        centre(as_int64(c[h.centre], &converted->centre)),
        negatives(as_int64(c[h.negatives], &converted->negatives)),
        count(c[h.context].shape()[0]),
        width(c[h.context].shape()[1]),
        drawn(c[h.negatives].shape()[1] / (h.shared ? 1 : width)),
        dim(c[h.words].shape()[1]),
        shared(h.shared),
        held(RowLocks::shared()) {
    check_ids("Context", context, count * width, c[h.words].shape()[0]);
    check_ids("Centre", centre, count, c[h.contexts].shape()[0]);
    check_ids("Negatives", negatives, c[h.negatives].numel(), c[h.contexts].shape()[0]);
  }

  bool has(int64_t i, int64_t w) const { return !present || present[i * width + w] != 0; }
  T weight(int64_t i, int64_t w) const { return present ? present[i * width + w] : T{1}; }
  int64_t sets() const { return shared ? 1 : width; }  // sets of negatives in a window
  int64_t target_id(int64_t i, int64_t at) const {
    return at == 0 ? centre[i] : negatives[i * drawn * sets() + at - 1];
  }
  int64_t grain() const { return 131072 / (width * (1 + drawn) * std::max<int64_t>(1, dim)) + 1; }

  void prefetch(int64_t i) const {
    if (i >= count) return;
    for (int64_t w = 0; w < width; ++w) {
      if (has(i, w)) ask(words, context[i * width + w]);
    }
    for (int64_t t = 0; t <= drawn * sets(); ++t) ask(contexts, target_id(i, t));
  }
  void ask(const T* table, int64_t row) const {
    const auto* p = reinterpret_cast<const char*>(table + row * dim);
    for (int64_t k = 0; k < dim * static_cast<int64_t>(sizeof(T)); k += 64) __builtin_prefetch(p + k);
  }
};

// The working set of a window, contiguous and padded: rows of the words that are present, of the centre and the
// negatives. Each thread has one, which grows to the largest window.
template <class T> class WordWindow {
 public:
  std::vector<int64_t> places, ids;      // of each word in the window; of each target: its row
  std::vector<const T*> words, targets;  // word p has the centre and targets [first(p), first(p) + drawn)
  std::vector<T> x, scratch;             // 1 + drawn numbers per word: first scores, then slopes

  static WordWindow& mine() {
    thread_local WordWindow window;
    return window;
  }
  int64_t first(const WordWindows<T>& all, int64_t p) const { return all.shared ? 1 : 1 + p * all.drawn; }

  void fetch(const WordWindows<T>& all, int64_t i) {
    const int64_t pitch = padded(all.dim), n = 1 + all.drawn, most = all.width + 1 + all.drawn * all.sets();
    if (rows_.size() < static_cast<size_t>(most * pitch)) rows_.resize(static_cast<size_t>(most * pitch));
    for (auto* list : {&places, &ids}) list->clear();
    for (auto* list : {&words, &targets}) list->clear();
    for (int64_t w = 0; w < all.width; ++w) {
      if (!all.has(i, w)) continue;
      places.push_back(w);
      words.push_back(copy(all, all.words, all.context[i * all.width + w], pitch));
    }
    ids.push_back(all.centre[i]);
    const auto take = [&](int64_t w) {
      for (int64_t t = 1; t < n; ++t) ids.push_back(all.target_id(i, w * all.drawn + t));
    };
    if (all.shared) take(0);
    for (size_t p = 0; !all.shared && p < places.size(); ++p) take(places[p]);
    for (const int64_t id : ids) targets.push_back(copy(all, all.contexts, id, pitch));
    const size_t pairs = places.size() * static_cast<size_t>(n);
    if (x.size() < pairs) x.resize(pairs);
    if (scratch.size() < 2 * pairs) scratch.resize(2 * pairs);
  }

 private:
  const T* copy(const WordWindows<T>& all, const T* table, int64_t row, int64_t pitch) {
    T* to = rows_.data() + static_cast<int64_t>(words.size() + targets.size()) * pitch;
    const RowLocks::Hold hold(table, row, all.held);
    std::copy(table + row * all.dim, table + (row + 1) * all.dim, to);
    std::fill(to + all.dim, to + pitch, T{0});
    return to;
  }
  std::vector<T> rows_;
};

}  // namespace anabranch::loss
