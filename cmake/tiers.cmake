# The table of folders, which CMake and tools/check_includes.py read.
#
# A folder includes its own headers and those of lower tiers, never those of another folder in its tier. No folder outside
# src/ops includes a header of src/ops. A folder is an OBJECT library: a STATIC one would drop op registrations, because no
# code refers to them by name. A folder that does not exist is skipped.
#
#         folder           tier  libraries (PUBLIC: for the folder and all above it; PRIVATE: for the folder only)
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
