// data/: data sets, their settings and streams of batches.
#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind.h"
#include "data/block.h"
#include "data/dataset.h"
#include "data/number.h"
#include "data/part_stream.h"
#include "data/row_format.h"
#include "data/row_parser.h"
#include "table_file.h"

namespace anabranch::python {
namespace {

nb::dict statistics_dict(const data::Statistics& s) {
  nb::dict out;
  out["lines"] = s.lines;
  out["rows"] = s.rows;
  out["bad_rows"] = s.bad_rows;
  out["missing"] = s.missing;
  out["uneven_rows"] = s.uneven_rows;
  out["bytes"] = s.bytes;
  out["files"] = s.files;
  out["parse_s"] = s.parse_s;
  out["blocked_s"] = s.blocked_s;
  out["waited_s"] = s.waited_s;
  return out;
}

// A stream whose threads end without the GIL, for which one of them may wait, even if Python drops it.
std::shared_ptr<data::BatchStream> closed_unlocked(std::shared_ptr<data::BatchStream> stream) {
  data::BatchStream* const plain = stream.get();
  return {plain, [held = std::move(stream)](data::BatchStream*) mutable {
            if (!PyGILState_Check()) return held.reset();
            const Unlocked unlocked;
            held.reset();
          }};
}

// The next batch with separate tensors, as {name: LoDTensor}; None at the end.
nb::object next_batch(data::BatchStream& stream) {
  data::Batch batch;
  bool some = false;
  {
    const Unlocked unlocked;
    some = stream.next(&batch);
  }
  if (!some) return nb::none();
  nb::dict out;
  const auto slots = stream.schema().used();
  for (size_t i = 0; i < slots.size(); ++i) {
    TensorRef column;
    column.own = std::move(batch.columns[i]);
    out[nb::str(slots[i]->name.c_str())] = nb::cast(std::move(column));
  }
  return out;
}

// salt: the name of a column or table, or the number of a column.
std::vector<int64_t> hash_ids(const std::vector<std::variant<nb::bytes, std::string>>& texts,
                              const std::variant<uint64_t, std::string>& salt, uint64_t buckets) {
  AB_CHECK(buckets > 0, InvalidArgument, "hash_ids: buckets must be above 0, got 0");
  const auto* name = std::get_if<std::string>(&salt);
  const uint64_t seed = name ? data::salt_of(*name) : std::get<uint64_t>(salt);
  std::vector<int64_t> ids;
  ids.reserve(texts.size());
  for (const auto& given : texts) {
    const auto* bytes = std::get_if<nb::bytes>(&given);
    const std::string_view text =
        bytes ? std::string_view(bytes->c_str(), bytes->size()) : std::string_view(std::get<std::string>(given));
    ids.push_back(static_cast<int64_t>(data::hashed_id(text, seed, buckets)));
  }
  return ids;
}

// The parsed form of a text: ([sample: [values of each used slot]], [(line, column, slot, reason, message)]).
nb::tuple parse_text(const data::Settings& settings, nb::bytes text) {
  std::string padded(text.c_str(), text.size());
  if (!padded.empty() && padded.back() != '\n') padded += '\n';
  const size_t size = padded.size();
  padded.append(data::kTextPadding, '\0');
  data::Block block;
  const auto parser = data::make_parser(settings);
  const std::string_view lines(padded.data(), size);
  parser->parse(lines, parser->head(lines.substr(0, lines.find('\n')), "the text"), &block);
  const auto parts = data::RecordShape(settings.schema).parts();
  nb::list rows, bad;
  for (int64_t i = 0; i < block.rows(); ++i) {
    nb::list row;
    const uint32_t* at = block.row(i);
    for (const auto& part : parts) {
      const int64_t count = part.fixed ? part.fixed : *at++;
      nb::list values;
      for (int64_t v = 0; v < count; ++v, at += part.words_of(1)) {
        if (part.is_float) {
          values.append(std::bit_cast<float>(*at));
        } else {
          values.append(static_cast<int64_t>(data::load_eight(reinterpret_cast<const char*>(at))));
        }
      }
      row.append(values);
    }
    rows.append(row);
  }
  for (const auto& b : block.bad) {
    const std::string message = bad_row_message(b, settings.schema, "text", b.line + 1);
    bad.append(nb::make_tuple(b.line + 1, b.column, b.slot, static_cast<int>(b.reason),
                              nb::bytes(message.data(), message.size())));
  }
  return nb::make_tuple(rows, bad, block.ins_ids, block.contents);
}

void bind_settings(nb::module_& m) {
  nb::class_<data::Slot>(m, "Slot")
      .def(
          "__init__",
          [](data::Slot* self, std::string name, bool is_float, bool dense, const std::vector<int64_t>& shape,
             bool used) {
            new (self)
                data::Slot{std::move(name), is_float ? DType::kFloat32 : DType::kInt64, dense, Shape(shape), used};
          },
          nb::arg("name"), nb::arg("is_float"), nb::arg("dense"), nb::arg("shape"), nb::arg("used") = true)
      .def_ro("name", &data::Slot::name);
  using S = data::Settings;
  nb::class_<S>(m, "DataSettings")
      .def(nb::init<>())
      .def_prop_rw(
          "slots", [](const S& s) { return s.schema.slots; },
          [](S& s, std::vector<data::Slot> slots) { s.schema.slots = std::move(slots); })
      .def_prop_rw(
          "ins_id", [](const S& s) { return s.schema.ins_id; }, [](S& s, bool on) { s.schema.ins_id = on; })
      .def_prop_rw(
          "content", [](const S& s) { return s.schema.content; }, [](S& s, bool on) { s.schema.content = on; })
      .def_prop_rw(
          "joins", [](const S& s) { return s.schema.joins; }, [](S& s, bool on) { s.schema.joins = on; })
      .def_prop_rw(
          "drop_zeros", [](const S& s) { return s.schema.drop_zeros; }, [](S& s, bool on) { s.schema.drop_zeros = on; })
      .def_prop_rw(
          "bad_rows_before", [](const S& s) { return s.bad_rows.before; },
          [](S& s, int64_t rows) { s.bad_rows.before = rows; })
      .def_prop_rw(
          "max_bad_rows", [](const S& s) { return s.bad_rows.max_rows; },
          [](S& s, int64_t rows) { s.bad_rows.max_rows = rows; })
      .def(
          "set_bad_rows",
          [](S& s, const std::string& kind, int64_t max_rows, const std::string& file) {
            using Kind = data::BadRowPolicy::Kind;
            s.bad_rows = {kind == "raise"  ? Kind::kRaise
                          : kind == "skip" ? Kind::kSkip
                                           : Kind::kQuarantine,
                          max_rows, file};
          },
          nb::arg("kind"), nb::arg("max_rows"), nb::arg("file"))
      .def(
          "set_share",
          [](S& s, double begin, double end, uint64_t seed, const std::string& column) {
            s.share = {begin, end, seed, column};
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("seed"), nb::arg("column") = "")
      .def("set_open_table", &set_open_table, nb::arg("open"))
      .def_rw("files", &S::files)
      .def_rw("format", &S::format)
      .def_rw("pipe_command", &S::pipe_command)
      .def_rw("batch_size", &S::batch_size)
      .def_rw("drop_last", &S::drop_last)
      .def_rw("threads", &S::threads)
      .def_rw("in_memory", &S::in_memory)
      .def_rw("seed", &S::seed)
      .def_rw("silence_s", &S::silence_s)
      .def_rw("command_limit_s", &S::command_limit_s)
      .def_rw("max_line_bytes", &S::max_line_bytes)
      .def_rw("cache_folder", &S::cache_folder);
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_settings(m);
  nb::class_<data::BatchStream>(m, "BatchStream")
      .def("next", &next_batch, "{name: LoDTensor} with the next batch, or None at the end.")
      .def("close", &data::BatchStream::close, CallUnlocked())
      .def("statistics", [](const data::BatchStream& s) { return statistics_dict(s.statistics()); })
      .def(
          "uneven", [](const data::BatchStream& s) { return s.statistics().uneven; },
          "Position and reason of the first row with a joined slot, or an empty text.")
      .def("progress", &data::BatchStream::progress)
      .def_prop_ro("rows_expected", &data::BatchStream::rows_expected)
      .def(
          "skip", [](data::BatchStream& s, int64_t count) { return data::skip_batches(&s, count); }, nb::arg("count"),
          CallUnlocked(), "Skips this number of batches; returns how many there were.");
  nb::class_<data::PartStream, data::BatchStream>(m, "PartStream")
      .def(nb::init<std::shared_ptr<data::BatchStream>, int64_t>(), nb::arg("whole"), nb::arg("batches"))
      .def_prop_ro("ended", &data::PartStream::ended);
  using D = data::Dataset;
  nb::class_<D>(m, "Dataset")
      .def(nb::init<data::Settings>(), nb::arg("settings"))
      .def("set", &D::set, nb::arg("settings"), CallUnlocked())
      .def(
          "open",
          [](D& self, bool ordered, int threads) {
            const Unlocked unlocked;
            return closed_unlocked(self.open({ordered, threads, check_signals}));
          },
          nb::arg("ordered") = true, nb::arg("threads") = 0)
      .def(
          "load", [](D& self) { self.load(check_signals); }, CallUnlocked())
      .def(
          "preload", [](D& self, int threads) { self.preload(threads, check_signals); }, nb::arg("threads"),
          CallUnlocked())
      .def("wait_preload", &D::wait_preload, CallUnlocked())
      .def("release", &D::release, CallUnlocked())
      .def("local_shuffle", &D::local_shuffle, CallUnlocked())
      .def("shuffles",
           [](const D& self) {
             const D::Shuffles s = self.shuffles();
             return nb::make_tuple(s.first, s.count);
           })
      .def(
          "shuffle_as",
          [](D& self, uint64_t first, uint64_t count) {
            self.shuffle_as({first, count});
          },
          nb::arg("first"), nb::arg("count"), CallUnlocked())
      .def("deal",
           [](const D& self, int trainers, int first) {
             std::vector<std::string> parts;
             {
               const Unlocked unlocked;
               parts = self.deal(trainers, first);
             }
             std::vector<nb::bytes> out;
             for (const auto& part : parts) out.emplace_back(part.data(), part.size());
             return out;
           })
      .def("take",
           [](D& self, const std::vector<nb::bytes>& parts) {
             std::vector<std::string> given;
             for (const auto& part : parts) given.emplace_back(part.c_str(), part.size());
             const Unlocked unlocked;
             self.take(given);
           })
      .def("records", &D::records, CallUnlocked())
      .def("memory_bytes", &D::memory_bytes, CallUnlocked())
      .def("load_uneven", [](const data::Dataset& self) { return self.load_statistics().uneven; })
      .def("load_statistics",
           [](const D& self) {
             data::Statistics found;
             {
               const Unlocked unlocked;
               found = self.load_statistics();
             }
             return statistics_dict(found);
           })
      .def("slots_shuffle", &D::slots_shuffle, nb::arg("slots"), CallUnlocked())
      .def("merge_by_ins_id", &D::merge_by_ins_id, nb::arg("merge_size"), CallUnlocked());
  m.def("hash_ids", &hash_ids, nb::arg("texts"), nb::arg("salt"), nb::arg("buckets"),
        "The ids of texts in a column with this name or number, as the reader computes them.");
  m.def("parse_text", &parse_text, nb::arg("settings"), nb::arg("text"));
}

}  // namespace anabranch::python
