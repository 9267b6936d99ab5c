// Device kernels for the ops that the pass fuse_embeddings makes, and for similar ops: factories for .device<T>().
#pragma once
#include "opdef/op_def.h"

namespace anabranch::sparse {

template <class T> Kernel queued_concat(const KernelArgs& op);      // fused_embedding_concat
template <class T> Kernel queued_table_grad(const KernelArgs& op);  // fused_embedding_grad
template <class T> Kernel queued_row_update(const KernelArgs& op);  // fused_embedding_update

// fused_embedding_seq_pool and its gradient, dense or sparse.
template <class T> Kernel queued_pooling(const KernelArgs& op);
template <class T> Kernel queued_pooling_grad(const KernelArgs& op);

}  // namespace anabranch::sparse
