// Times Gloo's all-reduce of fp32 arrays among processes of this machine, over TCP on the loopback
// interface: its default algorithm, as torch.distributed calls it.
//
//   gloo FOLDER PROCESSES BYTES CALLS    prints the seconds that a call takes, the mean of CALLS calls
//
// The processes find one another through files in FOLDER. A call before the timed ones connects them.

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

namespace {

double seconds_of_call(const char* folder, int processes, size_t elements, int calls, int rank) {
  gloo::transport::tcp::attr address;
  address.hostname = "127.0.0.1";
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, processes);
  gloo::rendezvous::FileStore store(folder);
  auto device = gloo::transport::tcp::CreateDevice(address);
  context->connectFullMesh(store, device);

  std::vector<float> array(elements);
  auto reduce = [&](uint32_t tag) {
    gloo::AllreduceOptions options(context);
    options.setOutput(array.data(), array.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    options.setTag(tag);
    gloo::allreduce(options);
  };
  for (size_t i = 0; i < elements; i++) array[i] = float(rank + 1);
  reduce(0);
  for (float x : array) {
    if (x != float(processes * (processes + 1) / 2)) {
      std::fprintf(stderr, "gloo: a sum is %g\n", x);
      std::exit(1);
    }
  }
  auto before = std::chrono::steady_clock::now();
  for (int i = 1; i <= calls; i++) reduce(i);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count() / calls;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: gloo FOLDER PROCESSES BYTES CALLS\n");
    return 2;
  }
  int processes = std::atoi(argv[2]);
  size_t elements = std::strtoull(argv[3], nullptr, 10) / sizeof(float);
  int calls = std::atoi(argv[4]);
  int rank = 0;
  for (int r = 1; r < processes && rank == 0; r++) {
    if (fork() == 0) rank = r;
  }
  try {
    double seconds = seconds_of_call(argv[1], processes, elements, calls, rank);
    if (rank == 0) std::printf("%.9f\n", seconds);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gloo: %s\n", e.what());
    return 1;
  }
  int status = 0, failed = 0;
  while (rank == 0 && wait(&status) > 0) failed |= status;
  return failed != 0;
}
