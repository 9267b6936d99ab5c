// Precision and recall of chunks - named entities, phrases - encoded by sequences of tags.
#include <algorithm>
#include <array>

#include "ops/declare/attr_checks.h"
#include "ops/metric/chunks.h"
#include "ops/sequence/spans.h"

namespace anabranch::metric {

bool chunk_ends(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now) {
  if (before.type == outside) return false;
  if (now.type != before.type) return true;
  if (before.place == scheme.end || before.place == scheme.single) return true;
  const bool open = before.place == scheme.begin || before.place == scheme.inside;
  return open && (now.place == scheme.begin || now.place == scheme.single);
}

bool chunk_starts(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now) {
  if (now.type == outside) return false;
  if (before.type != now.type) return true;
  if (now.place == scheme.begin || now.place == scheme.single) return true;
  const bool goes_on = now.place == scheme.inside || now.place == scheme.end;
  return goes_on && (before.place == scheme.end || before.place == scheme.single);
}

void find_chunks(const ChunkScheme& scheme, int64_t types, const int64_t* tags, int64_t n, std::vector<Chunk>* chunks) {
  Tag before{types, -1};
  int64_t begin = -1;
  for (int64_t t = 0; t < n; ++t) {
    const Tag now{tags[t] / scheme.places, tags[t] % scheme.places};
    if (begin >= 0 && chunk_ends(scheme, types, before, now)) {
      chunks->push_back({begin, t - 1, before.type});
      begin = -1;
    }
    if (chunk_starts(scheme, types, before, now)) begin = t;
    before = now;
  }
  if (begin >= 0) chunks->push_back({begin, n - 1, before.type});
}

namespace {

using sequence::Spans;

const ChunkScheme& scheme_of(const std::string& name) {
  return *std::find_if(std::begin(kChunkSchemes), std::end(kChunkSchemes),
                       [&](const ChunkScheme& s) { return name == s.name; });
}

struct Counts {
  int64_t inferred = 0, labeled = 0, correct = 0;
};

class Counter {
 public:
  Counter(const ChunkScheme& scheme, int64_t types, std::vector<int32_t> excluded)
      : scheme_(scheme), types_(types), excluded_(std::move(excluded)) {}

  void add(const int64_t* inferred, const int64_t* labels, int64_t n, Counts* counts) {
    find("Inference", inferred, n, &inferred_);
    find("Label", labels, n, &labeled_);
    counts->inferred += static_cast<int64_t>(inferred_.size());
    counts->labeled += static_cast<int64_t>(labeled_.size());
    for (size_t i = 0, k = 0; i < inferred_.size() && k < labeled_.size();) {
      counts->correct += inferred_[i] == labeled_[k];
      const int64_t end = inferred_[i].end, other = labeled_[k].end;
      i += end <= other, k += other <= end;
    }
  }

 private:
  void find(const char* slot, const int64_t* tags, int64_t n, std::vector<Chunk>* chunks) const {
    const int64_t most = types_ * scheme_.places;
    for (int64_t t = 0; t < n; ++t) {
      AB_CHECK(tags[t] >= 0 && tags[t] <= most, InvalidArgument,
               "{} must be from 0 to {} ({} types, {} tags each, and the outside tag), got {}", slot, most, types_,
               scheme_.places, tags[t]);
    }
    chunks->clear();
    find_chunks(scheme_, types_, tags, n, chunks);
    std::erase_if(*chunks, [&](const Chunk& chunk) {
      return std::find(excluded_.begin(), excluded_.end(), chunk.type) != excluded_.end();
    });
  }

  const ChunkScheme& scheme_;
  int64_t types_;
  std::vector<int32_t> excluded_;
  std::vector<Chunk> inferred_, labeled_;
};

void infer(InferContext& c) {
  for (const char* slot : {"Inference", "Label"}) check_ids_dtype(c, slot);
  check_same_shape(c, "Inference", "Label");
  const Shape& x = c.in("Inference").shape;
  if (c.has_in("SeqLength")) {
    check_rank(c, "Inference", 2, 3);
    AB_CHECK(x.rank() == 2 || x[2] == 1 || x[2] < 0, ShapeMismatch,
             "Inference must be [batch, rows] or [batch, rows, 1], got {}", x.str());
    sequence::check_lengths(c, "SeqLength", x[0]);
  } else if (c.runtime()) {
    const LoD &have = sequence::single_level(c, "Inference"), &expected = sequence::single_level(c, "Label");
    AB_CHECK(have == expected, InvalidArgument, "Inference and Label must have the same sequences");
    check_number_per_row(c, "Inference", x[0]);
  }
  for (const char* slot : {"Precision", "Recall", "F1-Score"}) c.set_out(slot, Shape{1}, DType::kFloat32);
  for (const char* slot : {"NumInferChunks", "NumLabelChunks", "NumCorrectChunks"}) {
    c.set_out(slot, Shape{1}, DType::kInt64);
  }
}

struct Results {
  Out precision, recall, f1, inferred, labeled, correct;
  explicit Results(const KernelArgs& op)
      : precision(op.out("Precision")),
        recall(op.out("Recall")),
        f1(op.out("F1-Score")),
        inferred(op.out("NumInferChunks")),
        labeled(op.out("NumLabelChunks")),
        correct(op.out("NumCorrectChunks")) {}

  void write(const KernelContext& c, const Counts& n) const {
    const auto share = [&](int64_t of) {
      return of == 0 ? 0.0F : static_cast<float>(static_cast<double>(n.correct) / static_cast<double>(of));
    };
    const float p = share(n.inferred), r = share(n.labeled);
    set(c, precision, p);
    set(c, recall, r);
    set(c, f1, n.correct == 0 ? 0.0F : 2 * p * r / (p + r));
    set(c, inferred, n.inferred);
    set(c, labeled, n.labeled);
    set(c, correct, n.correct);
  }

 private:
  template <class T> static void set(const KernelContext& c, Out out, T value) {
    if (c.needs(out)) c[out].mutable_data<T>()[0] = value;
  }
};

AB_OP(chunk_eval)
    .doc(
        "Counts of the chunks in Inference and in Label and of those that agree in position and type; precision, "
        "recall and their harmonic mean. A tag is type * (tags of the scheme) + position.")
    .source("Tjong Kim Sang and Buchholz, Introduction to the CoNLL-2000 shared task")
    .in("Inference", "[rows, 1] int32 or int64 with LoD, or [batch, rows(, 1)] with SeqLength")
    .in("Label", "like Inference")
    .in_optional("SeqLength", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out("Precision", "[1] float32, correct chunks / chunks of Inference")
    .out("Recall", "[1] float32, correct chunks / chunks of Label")
    .out("F1-Score", "[1] float32")
    .out("NumInferChunks", "[1] int64")
    .out("NumLabelChunks", "[1] int64")
    .out("NumCorrectChunks", "[1] int64")
    .attr<int32_t>("num_chunk_types", 1, "number of chunk types; the outside tag follows their tags",
                   at_least("num_chunk_types", 1))
    .attr<std::string>("chunk_scheme", "IOB", "IOB, IOE, IOBES or plain",
                       one_of("chunk_scheme", {"IOB", "IOE", "IOBES", "plain"}))
    .attr<std::vector<int32_t>>("excluded_chunk_types", {}, "types to ignore")
    .infer(infer)
    .no_grad("counts have no gradient")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In inferred = op.in("Inference"), label = op.in("Label"), length = op.in("SeqLength");
      const auto counter = std::make_shared<Counter>(scheme_of(op.attr<std::string>("chunk_scheme")),
                                                     op.attr<int32_t>("num_chunk_types"),
                                                     op.attr<std::vector<int32_t>>("excluded_chunk_types"));
      return [=, results = Results(op), scratch = std::make_shared<std::array<Tensor, 3>>()](KernelContext& c) {
        const Shape& x = c[inferred].shape();
        const Spans spans = length ? Spans("SeqLength", as_int64(c[length], &(*scratch)[2]), x[0], x[1])
                                   : Spans(sequence::offsets(c[inferred]));
        const int64_t *a = as_int64(c[inferred], scratch->data()), *b = as_int64(c[label], &(*scratch)[1]);
        Counts counts;
        for (int64_t s = 0; s < spans.count(); ++s) {
          counter->add(a + spans.begin(s), b + spans.begin(s), spans.rows(s), &counts);
        }
        results.write(c, counts);
      };
    });

}  // namespace
}  // namespace anabranch::metric
