# The one table of folders, read by CMake and by tools/check_includes.py.
#
# A folder includes headers of itself and of lower tiers, never of a neighbor in its own tier, and nobody outside
# src/ops includes a header of src/ops. One folder is one OBJECT library: a STATIC one would drop op registrations,
# for nothing refers to them by name. A folder that is not there yet is skipped.
#
#         folder           tier  libraries (PUBLIC ones reach everybody above; the others stay inside the folder)
ab_folder(src/base       0     PUBLIC fmt::fmt Threads::Threads PRIVATE ab::hwy)
ab_folder(src/device     1     UNITY 9)
ab_folder(src/core       2     PRIVATE ab::hwy)
ab_folder(src/ir         3     LEVEL -Os UNITY 5 PRIVATE ab::protobuf)
ab_folder(src/comm       3     UNITY 6 PRIVATE ab::hwy)
ab_folder(src/rpc        3     LEVEL -O2 UNITY 6)
ab_folder(src/io         3     LEVEL -O2 UNITY 4)
ab_folder(src/data       4     UNITY 6 PRIVATE ab::json ab::zlib ab::zstd)
ab_folder(src/sparse     4     UNITY 6 PRIVATE ab::hwy)
ab_folder(src/rendezvous 4     LEVEL -O2 UNITY 2)
ab_folder(src/ps         5     LEVEL -O2 UNITY 7)
ab_folder(src/opdef      5     LEVEL -O2 UNITY 6)
ab_folder(src/ops        6     UNITY 5 HEADER ops/declare/declare.h
                               COLD control declare detection distributed files metric
                               PRIVATE ab::dnnl ab::hwy)
ab_folder(src/autodiff   6     LEVEL -Os UNITY 7)
ab_folder(src/graph      6     LEVEL -Os UNITY 8 HEADER graph/edit.h)
ab_folder(src/exec       7     UNITY 6)
ab_folder(src/engine     8     UNITY 4 PRIVATE ab::json ab::zlib)
ab_folder(python/bindings  9)
