#include "data/schema_steps.h"

#include <cmath>

#include "base/error.h"

namespace anabranch::data {
namespace {

constexpr int64_t kMostWhole = int64_t{1} << 53;  // a double holds integers up to here

using Type = Transform::Type;

struct Arguments {
  const Json& step;  // [name, arguments...]
  std::string where;
  ColumnRule* rule;
  Type type;

  // Argument i, as a number of the feature's type.
  double bound(size_t i, const char* what) const {
    if (type == Type::kInteger) {
      return static_cast<double>(whole_of(step[i], where, what, -kMostWhole + 1, kMostWhole - 1));
    }
    return static_cast<float>(number_of(step[i], where, what));
  }
};

// A text that is compared with fields, or stands for one.
std::string field_text(const Json& value, const Arguments& a, const char* what) {
  std::string text = text_of(value, a.where, what);
  AB_CHECK(text.find('\n') == std::string::npos && !text.ends_with('\r'), InvalidArgument,
           "{}: {} must not contain a line end, because a field of a file cannot, got {}{}", a.where, what,
           value.dump(),
           std::string_view(what) == "a word" ? ": use line.rstrip(\"\\r\\n\") for the lines of a file" : "");
  return text;
}

void read_missing(const Arguments& a, Step* step) {
  if (a.type == Type::kText) {
    step->text = field_text(a.step[1], a, "the value");
  } else {
    step->low = a.bound(1, "the value");
  }
}

void read_bounds(const Arguments& a, Step* step) {
  step->low = a.bound(1, "the lower bound");
  step->high = a.bound(2, "the upper bound");
  AB_CHECK(step->low <= step->high, InvalidArgument, "{}: the lower bound must not exceed the upper one, got {} and {}",
           a.where, step->low, step->high);
}

void read_log(const Arguments& /*a*/, Step* /*step*/) {}

void read_normalize(const Arguments& a, Step* step) {
  step->low = a.bound(1, "the mean");
  step->high = a.bound(2, "the scale");
  AB_CHECK(step->high > 0, InvalidArgument, "{}: the scale must be above 0, got {}", a.where, a.step[2].dump());
}

void read_bucketize(const Arguments& a, Step* step) {
  AB_CHECK(a.step[1].is_array() && !a.step[1].empty(), InvalidArgument, "{}: the bounds must be a list, got {}",
           a.where, a.step[1].dump());
  for (const Json& bound : a.step[1]) {
    step->bounds.push_back(static_cast<float>(number_of(bound, a.where, "a bound")));
    const size_t n = step->bounds.size();
    AB_CHECK(n < 2 || step->bounds[n - 2] < step->bounds[n - 1], InvalidArgument,
             "{}: the bounds must ascend as float32, got {}", a.where, a.step[1].dump());
  }
}

void read_hash(const Arguments& a, Step* step) {
  step->buckets = buckets_of(a.step[1], a.where);
  if (a.step.size() < 3) return;
  constexpr int64_t kMost = 100000;  // the number of a column
  const Json& salt = a.step[2];
  const uint64_t value = salt.is_string() ? salt_of(salt.get<std::string>())
                                          : static_cast<uint64_t>(whole_of(salt, a.where, "the salt", 0, kMost));
  for (ColumnRef& column : a.rule->columns) column.salt = value;
}

void read_vocabulary(const Arguments& a, Step* step) {
  AB_CHECK(a.step[1].is_array() && !a.step[1].empty(), InvalidArgument, "{}: the words must be a list, got {}", a.where,
           a.step[1].dump());
  std::vector<std::string> words;
  for (const Json& word : a.step[1]) words.push_back(field_text(word, a, "a word"));
  step->first = a.step.size() < 3 || flag_of(a.step[2], a.where, "others") ? 1 : 0;
  try {
    step->words = std::make_shared<Vocabulary>(std::move(words));
  } catch (const Error& e) {
    AB_THROW(InvalidArgument, "{}: {}", a.where, e.message());
  }
}

void read_date(const Arguments& a, Step* step) {
  step->part =
      static_cast<DatePart>(one_of(text_of(a.step[1], a.where, "the part"), date_parts(), a.where, "the part"));
  step->buckets = static_cast<uint64_t>(date_part_size(step->part));
  step->first = a.step.size() < 3 || flag_of(a.step[2], a.where, "others") ? 1 : 0;
}

struct StepKind {
  const char* name;
  Step::Op op;
  bool text, number, integer;  // the types of features that it applies to
  size_t least, most;          // arguments
  void (*read)(const Arguments& a, Step* step);
};

constexpr StepKind kSteps[] = {
    {"missing", Step::Op::kMissing, true, true, true, 1, 1, read_missing},
    {"range", Step::Op::kRange, false, true, true, 2, 2, read_bounds},
    {"clip", Step::Op::kClip, false, true, true, 2, 2, read_bounds},
    {"log", Step::Op::kLog, false, true, false, 0, 0, read_log},
    {"normalize", Step::Op::kNormalize, false, true, false, 2, 2, read_normalize},
    {"bucketize", Step::Op::kBucketize, false, true, false, 1, 1, read_bucketize},
    {"hash", Step::Op::kHash, true, false, false, 1, 2, read_hash},
    {"vocabulary", Step::Op::kVocabulary, true, false, false, 1, 2, read_vocabulary},
    {"date", Step::Op::kDate, true, false, false, 1, 2, read_date},
};
constexpr const char* kRequired = "required";  // of text: other features without "missing" are required anyway

bool applies(const StepKind& kind, Type type) {
  return type == Type::kText ? kind.text : type == Type::kNumber ? kind.number : kind.integer;
}

std::vector<std::string> names_for(Type type) {
  std::vector<std::string> names;
  for (const StepKind& kind : kSteps) {
    if (applies(kind, type)) names.emplace_back(kind.name);
  }
  if (type == Type::kText) names.emplace_back(kRequired);
  return names;
}

}  // namespace

void add_step(const Json& step, const std::string& where, ColumnRule* rule, Transform* transform) {
  AB_CHECK(step.is_array() && !step.empty(), InvalidArgument, "{}: a step must be a list like [\"log\"], got {}", where,
           step.dump());
  const std::string name = text_of(step[0], where, "the name of a step");
  const std::vector<std::string> names = names_for(transform->type);
  const char* const types[] = {"text", "numbers", "integers"};
  one_of(name, names, where, fmt::format("a step of {}", types[static_cast<size_t>(transform->type)]).c_str());
  AB_CHECK(transform->steps.empty() || transform->steps.back().op < Step::Op::kBucketize, InvalidArgument,
           "{}: {} cannot follow a step that gives ids (bucketize, hash, vocabulary, date)", where, name);
  const std::string here = where + ": " + name;
  if (name == kRequired) {
    AB_CHECK(step.size() == 1, InvalidArgument, "{}: it takes no arguments, got {}", here, step.dump());
    rule->required = true;
    return;
  }
  for (const StepKind& kind : kSteps) {
    if (name != kind.name) continue;
    AB_CHECK(step.size() > kind.least && step.size() <= kind.most + 1, InvalidArgument,
             "{}: it takes {} to {} arguments, got {}", here, kind.least, kind.most, step.size() - 1);
    Step made;
    made.op = kind.op;
    kind.read({step, here, rule, transform->type}, &made);
    transform->steps.push_back(std::move(made));
  }
}

}  // namespace anabranch::data
