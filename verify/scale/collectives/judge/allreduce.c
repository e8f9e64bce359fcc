// Prints the simulated time of one MPI_Allreduce of ints in SMPI, in seconds. SimGrid implements the algorithm;
// --cfg=smpi/allreduce:NAME chooses it.
//
// usage: smpirun ... allreduce COUNT
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int count = argc == 2 ? atoi(argv[1]) : 0;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int *in = calloc(count, sizeof *in), *out = calloc(count, sizeof *out);
  if (count < 1 || in == NULL || out == NULL) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (int i = 0; i < count; i++) {
    in[i] = rank + i;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  double time = MPI_Wtime() - start, slowest;
  MPI_Reduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  int size, wrong = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < count; i++) {
    wrong += out[i] != size * (size - 1) / 2 + size * i;
  }
  if (rank == 0) {
    printf("%.9e %d\n", slowest, wrong);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
