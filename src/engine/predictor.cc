#include "engine/predictor.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "engine/followed_model.h"

namespace anabranch {

namespace {

// Ops would also detect it, and name a variable that the user has never written.
void check_input(const Fed& fed, const Tensor& value) {
  AB_CHECK(value.dtype() == fed.dtype, InvalidArgument, "input {} must be {}, got {}", fed.name, dtype_name(fed.dtype),
           dtype_name(value.dtype()));
  AB_CHECK(compatible(fed.declared, value.shape()), ShapeMismatch, "input {} must be {}, got {}", fed.name,
           fed.declared.str(), value.shape().str());
}

}  // namespace

Predictor::Predictor(Model model, int threads) : model_(std::move(model)), threads_(threads) {
  CompileOptions options;
  options.execution.num_threads = threads;
  program_ = std::make_unique<CompiledProgram>(model_.program, model_.scope, options);
  run_ = std::make_unique<PreparedRun>(*program_, model_.feeds, model_.fetches);
  outputs_.resize(model_.fetches.size());
  shown_.resize(model_.fetches.size());
}

Predictor::~Predictor() = default;

std::unique_ptr<Predictor> Predictor::clone() const {
  auto made = std::make_unique<Predictor>(model_, threads_);
  made->follow(followed_);
  return made;
}

const std::vector<Tensor>& Predictor::run(std::span<const Tensor> inputs, const std::function<void()>& between) {
  run_into(inputs, outputs_, between);
  return outputs_;
}

void Predictor::run_into(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                         const std::function<void()>& between) {
  AB_CHECK(outputs.size() == model_.fetches.size(), InvalidArgument, "the model gives {} outputs, got room for {}",
           model_.fetches.size(), outputs.size());
  run_and_show(inputs, between, [outputs](const std::vector<const Tensor*>& shown) {
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i].copy_from(*shown[i]);
  });
}

void Predictor::run_and_show(std::span<const Tensor> inputs, const std::function<void()>& between, const Use& use) {
  AB_CHECK(inputs.size() == model_.feeds.size(), InvalidArgument, "the model takes {} inputs ({}), got {}",
           model_.feeds.size(), fmt::join(model_.feeds, ", "), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) check_input(run_->fed()[i], inputs[i]);
  // From the values that the run reads to their number, no other version comes.
  std::optional<RunGate::Run> of_one_version;
  if (followed_) {
    of_one_version.emplace(followed_->gate());
    AB_CHECK(!followed_->closed(), Unavailable, "version {} is no longer used", followed_->version());
  }
  run_->run(inputs, between, [&](const Step& step) {
    if (followed_) version_ = followed_->version();
    of_one_version.reset();
    for (size_t i = 0; i < shown_.size(); ++i) {
      shown_[i] = step.fetched()[i][0]->get<Tensor>();
      AB_CHECK(shown_[i] && shown_[i]->initialized(), Unsupported, "output {} is not a tensor", model_.fetches[i]);
    }
    use(shown_);
  });
}

}  // namespace anabranch
