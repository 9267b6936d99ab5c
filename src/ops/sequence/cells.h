// The kernels of recurrent cells, for the host and for devices: their arguments, those of the device kernel; the
// addresses that their formula reads and writes (Row, in the first row); and, in cell_formulas-inl.h, the formula, for
// one number on devices and in float64 and for a vector of float32 (cell_loops.h). A further cell is such structs.
#pragma once
#include "ops/device/args_recurrent.h"
#include "ops/sequence/act_functions.h"

namespace anabranch::sequence {

inline constexpr int64_t kTileUnits = 16;  // columns from gate to gate in a tile of products

// Offsets of a unit of a row: in rows of units, in rows of gates, and in rows whose distance the arguments give.
struct UnitPlace {
  int64_t row, unit, own, wide, apart;
  AB_HD UnitPlace(int64_t at, int64_t first, int64_t units, int gates, int64_t distance)
      : row(at), unit(first), own(at * units + first), wide(at * gates * units + first), apart(at * distance + first) {}
};

// The address of an operand: on the simulated device it is translated.
template <class T, bool kWrites> auto address_of(const device::DevicePtr<kWrites>& p) {
#if defined(__CUDACC__) || defined(AB_HOST_KERNELS)
  return p.template get<T>();
#else
  return static_cast<std::conditional_t<kWrites, T*, const T*> >(p.address);
#endif
}

template <int kNumber, class A> struct CellKernel {
  using Args = A;
  using Rule = decltype(A::rule);
  static constexpr int kGates = kNumber;  // of a row
  AB_HD static int64_t distance(const Args& a) { return a.rule.units; }
};

struct LstmCell : CellKernel<4, device::LstmCellArgs> {
  static constexpr const char* kName = "lstm_cell";
  template <class T> struct Row {
    T* gates;  // sums, which are replaced
    const T *before, *peepholes;
    T *cell, *hidden;
  };
  template <class T> static Row<T> first(const Args& a) {
    return {address_of<T>(a.gates), address_of<T>(a.before), address_of<T>(a.peepholes), address_of<T>(a.cell),
            address_of<T>(a.hidden)};
  }
  AB_HD static int64_t distance(const Args& a) { return a.row_hidden; }
};

struct LstmCellGrad : CellKernel<4, device::LstmCellGradArgs> {
  static constexpr const char* kName = "lstm_cell_grad";
  template <class T> struct Row {
    const T *gates, *cell, *before, *peepholes, *dhidden, *dcell, *factors;
    T *dgates, *dbefore;
  };
  template <class T> static Row<T> first(const Args& a) {
    return {address_of<T>(a.gates),     address_of<T>(a.cell),    address_of<T>(a.before),
            address_of<T>(a.peepholes), address_of<T>(a.dhidden), address_of<T>(a.dcell),
            address_of<T>(a.factors),   address_of<T>(a.dgates),  address_of<T>(a.dbefore)};
  }
  AB_HD static int64_t distance(const Args& a) { return a.row_hidden; }
};

struct GruGates : CellKernel<3, device::GruArgs> {
  static constexpr const char* kName = "gru_gates";
  template <class T> struct Row {
    T* gates;
    const T* before;
    T *left, *state;
  };
  template <class T> static Row<T> first(const Args& a) {
    return {address_of<T>(a.gates), address_of<T>(a.before), address_of<T>(a.left), address_of<T>(a.state)};
  }
};
struct GruState : GruGates {
  static constexpr const char* kName = "gru_state";
};

struct GruStateGrad : CellKernel<3, device::GruGradArgs> {
  static constexpr const char* kName = "gru_state_grad";
  template <class T> struct Row {
    const T *gates, *before, *dstate, *dleft;
    T *dgates, *dbefore;
  };
  template <class T> static Row<T> first(const Args& a) {
    return {address_of<T>(a.gates), address_of<T>(a.before), address_of<T>(a.dstate),
            address_of<T>(a.dleft), address_of<T>(a.dgates), address_of<T>(a.dbefore)};
  }
};
struct GruResetGrad : GruStateGrad {
  static constexpr const char* kName = "gru_reset_grad";
};

// An activation and a clip: a simple cell, or a projection.
struct ClippedAct : CellKernel<1, device::ClippedActArgs> {
  static constexpr const char* kName = "clipped_act";
  template <class T> struct Row {
    const T* y;
    T* x;
  };
  template <class T> static Row<T> first(const Args& a) { return {address_of<T>(a.y), address_of<T>(a.x)}; }
};
struct ClippedActGrad : ClippedAct {
  static constexpr const char* kName = "clipped_act_grad";
};

// States that a mask weights.
struct KeepRows : CellKernel<1, device::KeepRowsArgs> {
  static constexpr const char* kName = "keep_rows";
  template <class T> struct Row {
    const T *shares, *x, *before, *direct;
    T *y, *dbefore;
  };
  template <class T> static Row<T> first(const Args& a) {
    return {address_of<T>(a.shares), address_of<T>(a.x), address_of<T>(a.before),
            address_of<T>(a.direct), address_of<T>(a.y), address_of<T>(a.dbefore)};
  }
};
struct KeepRowsGrad : KeepRows {
  static constexpr const char* kName = "keep_rows_grad";
};

}  // namespace anabranch::sequence
