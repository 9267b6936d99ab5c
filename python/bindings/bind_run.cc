// engine/prepared_run: a call of Executor.run with the same objects as an earlier one. Everything that a call names is
// compared by identity here, so that a small step does not spend its time on lookups.
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind.h"
#include "core/row_locks.h"
#include "engine/prepared_run.h"
#include "fetched_array.h"

namespace anabranch::python {
namespace {

bool same_name(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0);
}

class PreparedCall {
 public:
  // feed: any dict with the keys of later calls; unknown: those among them that the program does not have.
  PreparedCall(CompiledProgram& program, const nb::dict& feed, const std::vector<std::string>& unknown,
               const nb::handle& fetch_list, std::vector<std::string> fetch)
      : run_(program, known(feed, unknown), std::move(fetch)), fetch_list_is_none_(fetch_list.is_none()) {
    size_t at = 0;
    for (auto [key, value] : feed) {
      keys_.push_back(nb::borrow(key));
      const bool ignored = std::find(unknown.begin(), unknown.end(), nb::cast<std::string>(key)) != unknown.end();
      fed_as_.push_back(ignored ? -1 : static_cast<int>(at++));
    }
    if (!fetch_list_is_none_) {
      for (nb::handle item : fetch_list) items_.push_back(nb::borrow(item));
    }
    batch_.resize(at);
    held_.resize(at);
    windows_.resize(run_.fetches().size());
  }

  // The fetched values; a tuple if one has sequences but arrays are requested; None if other names are fed or fetched;
  // False if a value must be converted.
  nb::object run(const nb::handle& feed, const nb::handle& fetch_list, bool numpy) {
    if (running_ || run_.stale() || !same_fetches(fetch_list) || !same_keys(feed)) return nb::none();
    if (!take(feed)) return nb::bool_(false);
    const struct Running {
      PreparedCall& call;
      explicit Running(PreparedCall& c) : call(c) { call.running_ = true; }
      ~Running() {
        call.running_ = false;
        for (auto& h : call.held_) h.reset();
      }
    } running(*this);
    nb::object out;
    {
      Unlocked unlocked;
      run_.run(batch_, check_signals, [&](const Step& step) {
        unlocked.lock();
        out = results(step, numpy);
      });
    }
    return out;
  }

 private:
  static std::vector<std::string> known(const nb::dict& feed, const std::vector<std::string>& unknown) {
    std::vector<std::string> names;
    for (auto [key, value] : feed) {
      auto name = nb::cast<std::string>(key);
      if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) names.push_back(std::move(name));
    }
    return names;
  }

  bool same_fetches(nb::handle list) const {
    if (list.is_none()) return fetch_list_is_none_;
    if (fetch_list_is_none_) return false;
    const bool is_list = PyList_CheckExact(list.ptr());
    if (!is_list && !PyTuple_CheckExact(list.ptr())) return false;
    const Py_ssize_t size = is_list ? PyList_Size(list.ptr()) : PyTuple_Size(list.ptr());
    if (size != static_cast<Py_ssize_t>(items_.size())) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = is_list ? PyList_GetItem(list.ptr(), i) : PyTuple_GetItem(list.ptr(), i);
      if (!same_name(item, items_[static_cast<size_t>(i)].ptr())) return false;
    }
    return true;
  }

  bool same_keys(nb::handle feed) const {
    if (feed.is_none()) return keys_.empty();
    if (!PyDict_CheckExact(feed.ptr()) || PyDict_Size(feed.ptr()) != static_cast<Py_ssize_t>(keys_.size())) {
      return false;
    }
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (size_t k = 0; PyDict_Next(feed.ptr(), &position, &key, &value); ++k) {
      if (!same_name(key, keys_[k].ptr())) return false;
    }
    return true;
  }

  // The values as tensors over their own memory.
  bool take(nb::handle feed) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    for (size_t k = 0; k < keys_.size() && PyDict_Next(feed.ptr(), &position, &key, &value); ++k) {
      if (fed_as_[k] < 0) continue;
      const auto i = static_cast<size_t>(fed_as_[k]);
      if (!tensor_over(value, &batch_[i])) return false;
      held_[i] = nb::borrow(value);  // another thread may empty the dict meanwhile
    }
    return true;
  }

  static bool tensor_over(nb::handle value, Tensor* out) {
    if (value.type().is(nb::type<TensorRef>())) {
      Tensor& t = nb::inst_ptr<TensorRef>(value)->get();
      if (!t.initialized()) return false;
      *out = t;
      return true;
    }
    out->set_lod(LoDRef());  // of the last call
    return view_array(value, out);
  }

  nb::object results(const Step& step, bool numpy) {
    const auto& fetched = step.fetched();
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(fetched.size())));
    bool sequences = false;
    for (size_t f = 0; f < fetched.size(); ++f) {
      nb::object one = result(step, f, numpy);
      sequences |= numpy && one.type().is(nb::type<TensorRef>());
      PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(f), one.release().ptr());
    }
    return sequences ? nb::steal(PyList_AsTuple(list.ptr())) : list;
  }

  nb::object result(const Step& step, size_t f, bool numpy) {
    const auto& slices = step.fetched()[f];
    const Tensor* t = slices.size() == 1 ? slices[0]->get<Tensor>() : nullptr;
    const bool plain = numpy && t && t->initialized() && t->place().on_host() && t->contiguous() && t->lod().empty();
    if (plain && !RowLocks::shared()) return windows_[f].copy(*t);  // collect() locks rows that training threads write
    Fetched copies = step.collect(f);
    return fetched_to_python(copies.size() == 1 ? std::move(copies[0]) : merge_fetched(copies, run_.fetches()[f]),
                             numpy);
  }

  PreparedRun run_;
  std::vector<nb::object> keys_;   // of the feed dict, in its order
  std::vector<int> fed_as_;        // by key: position in the batch; -1: the program has no such variable
  std::vector<nb::object> items_;  // of the fetch list; held, so that no other object gets their addresses
  bool fetch_list_is_none_;
  std::vector<Tensor> batch_;
  std::vector<nb::object> held_;
  std::vector<FetchedArray> windows_;
  bool running_ = false;
};

}  // namespace

void bind_run(nb::module_& m) {
  nb::class_<PreparedCall>(m, "PreparedCall", "A call of run with known names, made again.")
      .def(nb::init<CompiledProgram&, const nb::dict&, const std::vector<std::string>&, const nb::handle&,
                    std::vector<std::string>>(),
           nb::arg("engine"), nb::arg("feed"), nb::arg("unknown"), nb::arg("fetch_list").none(), nb::arg("fetch"),
           nb::keep_alive<1, 2>())
      .def("run", &PreparedCall::run, nb::arg("feed").none(), nb::arg("fetch_list").none(), nb::arg("numpy"));
}

}  // namespace anabranch::python
