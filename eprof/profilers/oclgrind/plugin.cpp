// A plugin of Oclgrind that runs kernels natively and counts them by basic block, in place of interpreting them.
//
// Oclgrind stays front end and device: it compiles the program and keeps its buffers. When a launch begins, the bitcode
// that would be interpreted is built into a shared object (`lowering.py`, once a program), run on Oclgrind's own buffers,
// its counts are printed as Oclgrind prints them, and the list of work-groups is emptied. What is declared here of
// Oclgrind's classes holds for the versions in `native.py`; nothing else may load this.
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llvm { class Value; class Argument; class Instruction; }
namespace oclgrind {
struct Size3 { size_t x, y, z; size_t at(int i) const { return i == 0 ? x : i == 1 ? y : z; } };
struct TypedValue { unsigned size, num; unsigned char *data; };
typedef std::map<const llvm::Value *, TypedValue> TypedValueMap;
enum MessageType { DEBUG, INFO, WARNING, ERROR };
class WorkItem;
class WorkGroup;
class Plugin;
class KernelInvocation;
struct Memory {
  void *getPointer(size_t address) const;
  size_t extractBuffer(size_t address) const;
};
struct Context {
  virtual ~Context();
  Memory *getGlobalMemory() const;
  void notifyMessage(MessageType type, const char *message) const;
  void registerPlugin(Plugin *plugin);
  void unregisterPlugin(Plugin *plugin);
  const KernelInvocation *m_kernelInvocation;
  Memory *m_globalMemory;
  std::list<std::pair<Plugin *, bool>> m_plugins;
};
struct Program {
  void getBinary(unsigned char *binary) const;
  size_t getBinarySize() const;
  unsigned long getUID() const;
};
struct Kernel {
  const llvm::Argument *getArgument(unsigned index) const;
  const std::string &getName() const;
  unsigned getNumArguments() const;
  unsigned getArgumentAddressQualifier(unsigned index) const;
  const Program *getProgram() const;
  TypedValueMap::const_iterator values_begin() const, values_end() const;
};
struct KernelInvocation {
  virtual ~KernelInvocation();
  const Context *m_context;
  const Kernel *m_kernel;
  size_t m_workDim;
  Size3 m_globalOffset, m_globalSize, m_localSize, m_numGroups;
  std::vector<Size3> m_workGroups;
};
class Plugin {
public:
  Plugin(const Context *context);
  virtual ~Plugin();
  virtual void hostMemoryLoad(const Memory *, size_t, size_t) {}
  virtual void hostMemoryStore(const Memory *, size_t, size_t, const uint8_t *) {}
  virtual void instructionExecuted(const WorkItem *, const llvm::Instruction *, const TypedValue &) {}
  virtual void kernelBegin(const KernelInvocation *) {}
  virtual void kernelEnd(const KernelInvocation *) {}
  virtual void log(MessageType, const char *) {}
  virtual void memoryAllocated(const Memory *, size_t, size_t, uint64_t, const uint8_t *) {}
  virtual void memoryAtomicLoad(const Memory *, const WorkItem *, int, size_t, size_t) {}
  virtual void memoryAtomicStore(const Memory *, const WorkItem *, int, size_t, size_t) {}
  virtual void memoryDeallocated(const Memory *, size_t) {}
  virtual void memoryLoad(const Memory *, const WorkItem *, size_t, size_t) {}
  virtual void memoryLoad(const Memory *, const WorkGroup *, size_t, size_t) {}
  virtual void memoryMap(const Memory *, size_t, size_t, size_t, uint64_t) {}
  virtual void memoryStore(const Memory *, const WorkItem *, size_t, size_t, const uint8_t *) {}
  virtual void memoryStore(const Memory *, const WorkGroup *, size_t, size_t, const uint8_t *) {}
  virtual void memoryUnmap(const Memory *, size_t, const void *) {}
  virtual void workGroupBarrier(const WorkGroup *, uint32_t) {}
  virtual void workGroupBegin(const WorkGroup *) {}
  virtual void workGroupComplete(const WorkGroup *) {}
  virtual void workItemBegin(const WorkItem *) {}
  virtual void workItemComplete(const WorkItem *) {}
  virtual bool isThreadSafe() const;

protected:
  const Context *m_context;
};
} // namespace oclgrind

#include "caches.h"
#include "plugin.h"

using namespace oclgrind;

extern "C" void *_ZTVN8oclgrind18InstructionCounterE[];  // its table of virtual functions, by which it is known
extern "C" char **environ;

// Switch stacks: what the ABI wants kept is pushed, the stack pointer goes to *from, and the other stack's is taken up.
#if defined(__x86_64__)
asm(R"(.text
.globl eprof_switch
.hidden eprof_switch
eprof_switch:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
.globl eprof_begin
.hidden eprof_begin
eprof_begin:
  mov %rbx, %rdi
  call eprof_fiber
  ud2
)");
enum { SAVED = 7, BEGIN = 6, OWNER = 4 };  // words on a new stack; where its first address and its worker stand
#elif defined(__aarch64__)
asm(R"(.text
.globl eprof_switch
.hidden eprof_switch
eprof_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.globl eprof_begin
.hidden eprof_begin
eprof_begin:
  mov x0, x19
  bl eprof_fiber
  brk #1
)");
enum { SAVED = 20, BEGIN = 11, OWNER = 0 };
#else
#error "stacks of work-items are switched on x86-64 and aarch64 only"
#endif
extern "C" void eprof_switch(void **from, void *to);
extern "C" void eprof_begin();

// What a built program says of a kernel: `manifest` in lowering.py writes it.
struct Operation { std::string name; bool memory; std::vector<uint64_t> block, count, bytes; };
struct Built {
  std::string reason;  // why it is interpreted; empty if it is not
  void (*run)(uint64_t *, void **) = nullptr;
  size_t blocks = 0, stack = 0;
  bool barriers = false;
  Entry constants{};  // of the program
  std::vector<uint64_t> locals;  // bytes of each of its local variables
  std::vector<Operation> operations;
  std::vector<std::string> sites;
};
typedef std::map<std::string, Built> Library;

struct Fiber { void *sp; uint64_t barrier; bool done; };

static const size_t TRAP = 1 << 20, STRIDE = 64;  // accesses out of bounds go to an address here, by their site
static char *trap_page;
static std::mutex stacks_mutex;
static std::multimap<size_t, char *> spare_stacks;

struct Launch {
  const KernelInvocation *invocation;
  caches_launch *caches;  // null: none are modelled
  const Built *built;
  std::vector<Entry> globals;
  std::vector<std::vector<uint8_t>> values;  // of the arguments
  std::vector<uint64_t> local_bytes;
  std::vector<uint64_t> counts;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::string error, modelled;  // why it was ended; the lines of its caches
  bool diverged = false;
};

struct Worker {
  uint64_t context[SLOTS];
  Launch *launch;
  caches_recorder *recorder;
  void *main_sp;
  sigjmp_buf escape;
  size_t current, items, stack;
  std::vector<Fiber> fibers;
  char *stacks;
  std::vector<Entry> locals;
  std::vector<void *> arguments;
  Size3 size;
  volatile uintptr_t fault;
  std::string failure;

  void select(size_t item) {
    current = item;
    size_t local[3] = {item % size.x, item / size.x % size.y, item / size.x / size.y};
    for (int i = 0; i < 3; i++) {
      context[LOCAL_ID + i] = local[i];
      context[GLOBAL_ID + i] =
          context[GROUP_ID + i] * context[LOCAL_SIZE + i] + local[i] + context[GLOBAL_OFFSET + i];
    }
    context[LOCAL_LINEAR] = item;
    caches_lane(recorder, item);
  }
  void start(size_t fiber) {
    char *top = stacks + (fiber + 1) * stack;
    void **sp = reinterpret_cast<void **>(top) - SAVED - 2;
    memset(sp, 0, (SAVED + 2) * sizeof *sp);
    sp[BEGIN] = reinterpret_cast<void *>(eprof_begin);
    sp[OWNER] = this;
    fibers[fiber] = Fiber{sp, 0, false};
  }
  void resume(size_t fiber) {
    context[STACK_LOW] = reinterpret_cast<uint64_t>(stacks + fiber * stack);
    eprof_switch(&main_sp, fibers[fiber].sp);
  }
  void pause(size_t fiber) { eprof_switch(&fibers[fiber].sp, main_sp); }
  void run_group(size_t index);
  void run();
};

static thread_local Worker *active;

// One work-item on a stack of its own; without barriers all of a group, one after the other.
extern "C" __attribute__((visibility("hidden"))) void eprof_fiber(Worker *worker) {
  const Built &built = *worker->launch->built;
  size_t fiber = built.barriers ? worker->current : 0;
  for (size_t item = fiber; item < (built.barriers ? fiber + 1 : worker->items); item++) {
    worker->select(item);
    built.run(worker->context, worker->arguments.data());
  }
  worker->fibers[fiber].done = true;
  worker->pause(fiber);
}

extern "C" void eprof_barrier(uint64_t *context, uint64_t site) {
  Worker *worker = reinterpret_cast<Worker *>(context[OWNER_SLOT]);
  size_t fiber = worker->current;
  worker->fibers[fiber].barrier = site + 1;
  worker->pause(fiber);
}

extern "C" void eprof_fail(uint64_t *context, const char *what) {
  Worker *worker = reinterpret_cast<Worker *>(context[OWNER_SLOT]);
  worker->failure = what;
  siglongjmp(worker->escape, 1);
}

void Worker::run_group(size_t index) {
  const KernelInvocation &ki = *launch->invocation;
  const Size3 group = ki.m_workGroups[index];
  for (int i = 0; i < 3; i++) {
    context[GROUP_ID + i] = group.at(i);
    size_t rest = ki.m_globalSize.at(i) - group.at(i) * ki.m_localSize.at(i);
    context[GROUP_SIZE + i] = std::min(ki.m_localSize.at(i), rest);
  }
  size = Size3{context[GROUP_SIZE], context[GROUP_SIZE + 1], context[GROUP_SIZE + 2]};
  items = size.x * size.y * size.z;
  for (size_t i = 1; i < locals.size(); i++)
    memset(reinterpret_cast<void *>(locals[i].base), 0, locals[i].size);
  size_t count = launch->built->barriers ? items : 1, waiting;
  for (size_t i = 0; i < count; i++)
    start(i);
  do {
    waiting = 0;
    uint64_t site = 0;
    bool diverged = false;
    for (size_t i = 0; i < count; i++) {
      if (fibers[i].done)
        continue;
      select(i);
      resume(i);
      if (fibers[i].done)
        continue;
      diverged |= waiting++ && fibers[i].barrier != site;
      site = fibers[i].barrier;
    }
    if (waiting && (diverged || waiting != count))
      launch->diverged = true;
    caches_barrier(recorder);
  } while (waiting);
  caches_group(recorder, index);
}

void Worker::run() {
  static const size_t signal_stack = 1 << 16;
  std::vector<char> handler_stack(signal_stack);
  stack_t mine{}, before{};
  mine.ss_sp = handler_stack.data();
  mine.ss_size = signal_stack;
  sigaltstack(&mine, &before);
  size_t done;
  active = this;
  if (!sigsetjmp(escape, 1)) {
    while ((done = launch->next++) < launch->invocation->m_workGroups.size())
      run_group(done);
  } else {
    std::lock_guard<std::mutex> lock(launch->mutex);
    launch->next = launch->invocation->m_workGroups.size();
    std::ostringstream text;
    const std::vector<std::string> &sites = launch->built->sites;
    size_t site = (fault - reinterpret_cast<uintptr_t>(trap_page)) / STRIDE;
    if (!failure.empty())
      text << failure;
    else if (fault - reinterpret_cast<uintptr_t>(trap_page) < TRAP && site < sites.size())
      text << sites[site] << ", outside of its buffer";
    else
      text << "an access to memory that is not there, or more private memory than there is";
    text << ", by work-item (" << context[GLOBAL_ID] << "," << context[GLOBAL_ID + 1] << "," << context[GLOBAL_ID + 2] << ")";
    launch->error = text.str();
  }
  active = nullptr;
  sigaltstack(&before, nullptr);
}

static struct sigaction old_actions[65];
static std::atomic<int> guarded{0};
static std::mutex guard_mutex;

static void on_fault(int signal, siginfo_t *info, void *where) {
  if (active) {
    active->fault = reinterpret_cast<uintptr_t>(info->si_addr);
    siglongjmp(active->escape, 1);
  }
  struct sigaction &old = old_actions[signal];
  if (old.sa_flags & SA_SIGINFO && old.sa_sigaction)
    return old.sa_sigaction(signal, info, where);
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN)
    return old.sa_handler(signal);
  sigaction(signal, &old, nullptr);  // the fault comes again, to whom it belongs
}

// Faults are caught while kernels run natively, and by nobody of ours else.
struct Guard {
  Guard() {
    std::lock_guard<std::mutex> lock(guard_mutex);
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (!guarded++)
      for (int signal : {SIGSEGV, SIGBUS, SIGFPE})
        sigaction(signal, &action, &old_actions[signal]);
  }
  ~Guard() {
    std::lock_guard<std::mutex> lock(guard_mutex);
    if (!--guarded)
      for (int signal : {SIGSEGV, SIGBUS, SIGFPE})
        sigaction(signal, &old_actions[signal], nullptr);
  }
};

static char *take_stacks(size_t stack, size_t count) {
  size_t bytes = stack * count;
  {
    std::lock_guard<std::mutex> lock(stacks_mutex);
    auto found = spare_stacks.find(bytes);
    if (found != spare_stacks.end()) {
      char *stacks = found->second;
      spare_stacks.erase(found);
      return stacks;
    }
  }
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  for (size_t i = 0; i < count; i++)
    mprotect(static_cast<char *>(mapped) + i * stack, 1 << 16, PROT_NONE);
  return static_cast<char *>(mapped);
}

class Native : public Plugin {
  std::map<size_t, std::pair<size_t, const Memory *>> m_buffers;  // of global memory: bytes, by their address
  std::map<unsigned long, Library> m_libraries;
  std::map<std::string, bool> m_told;
  std::mutex m_mutex;
  Plugin *m_nothing;  // Oclgrind deletes it where it finds it in the counter's place
  Plugin *m_counter = nullptr;
  std::string m_failure;

public:
  Native(const Context *context) : Plugin(context), m_nothing(new Plugin(context)) {}
  void leave(Context *context) {
    if (context != m_context)
      return;
    exchange(m_nothing, m_counter);
    context->unregisterPlugin(this);
  }
  bool isThreadSafe() const override { return true; }
  void memoryAllocated(const Memory *memory, size_t address, size_t size, uint64_t, const uint8_t *) override {
    if (memory != m_context->getGlobalMemory())
      return;
    std::lock_guard<std::mutex> lock(m_mutex);
    m_buffers[address] = {size, memory};
  }
  void memoryDeallocated(const Memory *memory, size_t address) override {
    if (memory != m_context->getGlobalMemory())
      return;
    std::lock_guard<std::mutex> lock(m_mutex);
    m_buffers.erase(address);
  }

  void kernelBegin(const KernelInvocation *invocation) override {
    exchange(m_nothing, m_counter);
    const std::string &name = invocation->m_kernel->getName();
    const Library &library = build(invocation->m_kernel->getProgram());
    auto found = library.find(name);
    std::string reason = found == library.end() ? m_failure : found->second.reason;
    if (reason.empty() && run(invocation, found->second))
      return;
    if (reason.empty())
      reason = "its launch could not be made ready";
    if (!m_told[name + reason])
      say(WARNING, "eprof: kernel '" + name + "' was interpreted, not run natively: " + reason);
    m_told[name + reason] = true;
  }

private:
  void say(MessageType type, const std::string &text) { m_context->notifyMessage(type, text.c_str()); }

  // Oclgrind's own counter stands aside while a kernel runs natively: put `to` in the place of `from`.
  bool exchange(Plugin *from, Plugin *to) {
    for (auto &entry : const_cast<Context *>(m_context)->m_plugins)
      if (entry.first == from && to) {
        entry.first = to;
        return true;
      }
    return false;
  }
  Plugin *counter() {
    for (auto &entry : m_context->m_plugins)
      if (*reinterpret_cast<void ***>(entry.first) == _ZTVN8oclgrind18InstructionCounterE + 2)
        return entry.first;
    return nullptr;
  }

  const Library &build(const Program *program);
  bool run(const KernelInvocation *invocation, const Built &built);
  void print(const std::string &name, const Launch &launch);
};

static uint64_t fnv(const std::vector<unsigned char> &data, uint64_t hash) {
  for (unsigned char byte : data)
    hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

// The program's bitcode as a key: without the random name that PyOpenCL gives each build, so that it is built once.
static std::string key_of(std::vector<unsigned char> data) {
  static const std::string mark = "pyopencl_defeat_cache_";
  auto at = data.begin();
  while ((at = std::search(at, data.end(), mark.begin(), mark.end())) != data.end())
    for (at += mark.size(); at != data.end() && isxdigit(*at); ++at)
      *at = '0';
  std::ostringstream key;
  key << std::hex << std::setfill('0') << std::setw(16) << fnv(data, 0xcbf29ce484222325ull) << std::setw(16)
      << fnv(data, 0x9e3779b97f4a7c15ull);
  return key.str();
}

static std::string environment(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

// Have lowering.py build a program; what it says goes to `messages`. False: it could not.
static bool lower(const std::string &bitcode, const std::string &object, const std::string &messages) {
  std::string python = environment("EPROF_NATIVE_PYTHON"), script = environment("EPROF_NATIVE_LOWERING");
  const char *arguments[] = {python.c_str(), "-I", script.c_str(), bitcode.c_str(), object.c_str(), nullptr};
  std::vector<char *> variables;  // none of the program's: a plugin or a preloaded library is not for this one
  for (char **one = environ; *one; one++)
    if (strncmp(*one, "OCLGRIND_", 9) && strncmp(*one, "LD_", 3))
      variables.push_back(*one);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child;
  int status = -1;
  bool started = !posix_spawn(&child, python.c_str(), &files, nullptr, const_cast<char **>(arguments), variables.data());
  while (started && waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  posix_spawn_file_actions_destroy(&files);
  return started && status == 0;
}

static Library load(const std::string &object, std::string &why) {
  Library library;
  void *handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle && !access(object.c_str(), F_OK))
    why = dlerror();
  const char *manifest = handle ? static_cast<const char *>(dlsym(handle, "eprof_manifest")) : nullptr;
  std::istringstream lines(manifest ? manifest : "");
  std::string line, word;
  Built *built = nullptr;
  const uint64_t *bounds = handle ? static_cast<const uint64_t *>(dlsym(handle, "eprof_vars_bounds")) : nullptr;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::getline(fields, word, '\t');
    std::string name;
    std::getline(fields, name, '\t');
    if (word == "kernel") {
      built = &library[name];
      if (bounds)
        built->constants = Entry{bounds[0], bounds[0], bounds[1] - bounds[0]};
      fields >> built->blocks >> built->stack >> built->barriers;
      for (uint64_t bytes; fields >> bytes;)
        built->locals.push_back(bytes);
      *reinterpret_cast<void **>(&built->run) = dlsym(handle, ("eprof.run." + name).c_str());
    } else if (word == "interpreted") {
      std::getline(fields, library[name].reason);
    } else if (word == "site") {
      built->sites.push_back(name);
    } else {
      Operation operation{name, word == "memory", {}, {}, {}};
      for (uint64_t block, count, bytes; fields >> block >> count >> bytes;) {
        operation.block.push_back(block);
        operation.count.push_back(count);
        operation.bytes.push_back(bytes);
      }
      built->operations.push_back(operation);
    }
  }
  return library;
}

const Library &Native::build(const Program *program) {
  std::lock_guard<std::mutex> lock(m_mutex);
  auto found = m_libraries.find(program->getUID());
  if (found != m_libraries.end())
    return found->second;
  std::vector<unsigned char> bitcode(program->getBinarySize());
  program->getBinary(bitcode.data());
  std::string folder = environment("EPROF_NATIVE_CACHE") + "/", object = folder + key_of(bitcode);
  object += environment("EPROF_CACHES").empty() ? ".so" : "-caches.so";
  m_failure = "it is not in what was built of its program";
  std::string last = "Python did not say why";
  Library library = load(object, last);
  if (library.empty()) {
    std::string mine = folder + std::to_string(getpid()) + "-" + std::to_string(program->getUID());
    std::ofstream(mine + ".bc", std::ios::binary)
        .write(reinterpret_cast<char *>(bitcode.data()), static_cast<std::streamsize>(bitcode.size()))
        .flush();
    bool lowered = lower(mine + ".bc", object, mine + ".txt");
    if (lowered)
      library = load(object, last);
    if (library.empty()) {
      std::ifstream messages(mine + ".txt");
      std::string line;
      while (std::getline(messages, line))
        if (!line.empty())
          last = line;
      m_failure = "it could not be built (" + last + ")";
    }
    unlink((mine + ".bc").c_str());
    unlink((mine + ".txt").c_str());
  }
  return m_libraries[program->getUID()] = library;
}

bool Native::run(const KernelInvocation *invocation, const Built &built) {
  const Kernel &kernel = *invocation->m_kernel;
  if (!built.run || !(m_counter = counter()))
    return false;
  Launch launch;
  launch.invocation = invocation;
  launch.built = &built;
  launch.counts.resize(built.blocks + 1);
  launch.globals.assign(1, built.constants);
  {
    std::lock_guard<std::mutex> lock(m_mutex);
    for (auto &buffer : m_buffers) {
      size_t index = buffer.second.second->extractBuffer(buffer.first);
      if (index >= launch.globals.size())
        launch.globals.resize(index + 1);
      void *host = buffer.second.second->getPointer(buffer.first);
      launch.globals[index] = Entry{buffer.first, reinterpret_cast<uint64_t>(host), buffer.second.first};
    }
  }
  launch.local_bytes = built.locals;
  std::map<const llvm::Value *, TypedValue> values(kernel.values_begin(), kernel.values_end());
  for (unsigned i = 0; i < kernel.getNumArguments(); i++) {
    auto value = values.find(reinterpret_cast<const llvm::Value *>(kernel.getArgument(i)));
    if (value == values.end())
      return false;
    size_t bytes = size_t(value->second.size) * value->second.num;
    std::vector<uint8_t> data(std::max(bytes, sizeof(uint64_t)));
    if (kernel.getArgumentAddressQualifier(i) == CL_LOCAL) {
      launch.local_bytes.push_back(bytes);
      uint64_t tagged = uint64_t(launch.local_bytes.size()) << TAG_SHIFT;
      memcpy(data.data(), &tagged, sizeof tagged);
      data.resize(sizeof tagged);
    } else if (value->second.data) {
      memcpy(data.data(), value->second.data, bytes);
    }
    launch.values.push_back(data);
  }
  size_t arena = 0;
  for (uint64_t bytes : launch.local_bytes)
    arena += (bytes + 127) / 128 * 128;
  const Size3 &most = invocation->m_localSize;
  size_t items = most.x * most.y * most.z, fibers = built.barriers ? items : 1;
  launch.caches = caches_begin(invocation->m_workGroups.size(), items, arena);
  const char *wanted = getenv("OCLGRIND_NUM_THREADS");
  size_t threads = wanted ? strtoul(wanted, nullptr, 10) : std::thread::hardware_concurrency();
  threads = std::min({threads, invocation->m_workGroups.size(), 12000 / fibers});  // stacks, each with a guard, are few
  threads = std::max<size_t>(1, threads);
  std::vector<Worker> workers(threads);
  std::vector<std::vector<uint64_t>> counts(threads);
  std::vector<std::vector<char>> arenas(threads);
  bool able = true;
  for (size_t i = 0; i < threads; i++) {
    Worker &worker = workers[i];
    memset(worker.context, 0, sizeof worker.context);
    worker.launch = &launch;
    worker.recorder = caches_recorder_new(launch.caches);
    worker.fibers.resize(fibers);
    worker.stack = built.stack;
    able &= (worker.stacks = take_stacks(built.stack, fibers)) != nullptr;
    counts[i].resize(built.blocks + 1);
    arenas[i].resize(arena + 128);
    worker.locals.resize(1);
    uint64_t base = (reinterpret_cast<uint64_t>(arenas[i].data()) + 127) / 128 * 128;
    for (uint64_t bytes : launch.local_bytes) {
      worker.locals.push_back(Entry{uint64_t(worker.locals.size()) << TAG_SHIFT, base, bytes});
      base += (bytes + 127) / 128 * 128;
    }
    for (auto &data : launch.values)
      worker.arguments.push_back(data.data());
    uint64_t *context = worker.context;
    context[RECORDER] = reinterpret_cast<uint64_t>(worker.recorder);
    context[GLOBALS] = reinterpret_cast<uint64_t>(launch.globals.data());
    context[N_GLOBALS] = launch.globals.size();
    context[LOCALS] = reinterpret_cast<uint64_t>(worker.locals.data());
    context[N_LOCALS] = worker.locals.size();
    context[COUNTERS] = reinterpret_cast<uint64_t>(counts[i].data());
    context[TRAP_PAGE] = reinterpret_cast<uint64_t>(trap_page);
    context[STACK_SIZE] = built.stack;
    context[WORK_DIM] = invocation->m_workDim;
    context[OWNER_SLOT] = reinterpret_cast<uint64_t>(&worker);
    for (int d = 0; d < 3; d++) {
      context[GLOBAL_SIZE + d] = invocation->m_globalSize.at(d);
      context[GLOBAL_OFFSET + d] = invocation->m_globalOffset.at(d);
      context[LOCAL_SIZE + d] = invocation->m_localSize.at(d);
      context[NUM_GROUPS + d] = invocation->m_numGroups.at(d);
    }
  }
  if (able) {
    Guard guard;
    std::vector<std::thread> running;
    for (size_t i = 0; i < threads; i++)
      running.emplace_back(&Worker::run, &workers[i]);
    for (std::thread &thread : running)
      thread.join();
  }
  for (size_t i = 0; i < threads; i++) {
    for (size_t block = 0; block < counts[i].size(); block++)
      launch.counts[block] += counts[i][block];
    std::lock_guard<std::mutex> lock(stacks_mutex);
    if (workers[i].stacks)
      spare_stacks.emplace(built.stack * fibers, workers[i].stacks);
  }
  for (Worker &worker : workers)
    caches_recorder_free(worker.recorder);
  char modelled[1 << 13];
  launch.modelled.assign(modelled, caches_end(launch.caches, modelled, sizeof modelled));
  if (!able)
    return false;
  if (launch.diverged)
    say(ERROR, "Work-group divergence detected (barrier) in kernel '" + kernel.getName() + "'");
  if (launch.error.empty())
    print(kernel.getName(), launch);
  else
    say(ERROR, "eprof: a launch of kernel '" + kernel.getName() + "' was ended and is not counted: " + launch.error +
                   "; `eprof run --checked` interprets it and says more");
  const_cast<KernelInvocation *>(invocation)->m_workGroups.clear();
  exchange(m_counter, m_nothing);
  return true;
}

// As Oclgrind prints counts.
void Native::print(const std::string &name, const Launch &launch) {
  std::locale before = std::cout.getloc(), users("");
  std::vector<std::pair<uint64_t, std::string>> lines;
  for (const Operation &operation : launch.built->operations) {
    uint64_t count = 0, bytes = 0;
    for (size_t i = 0; i < operation.block.size(); i++) {
      count += launch.counts[operation.block[i]] * operation.count[i];
      bytes += launch.counts[operation.block[i]] * operation.bytes[i];
    }
    std::ostringstream text;
    text.imbue(users);
    text << operation.name;
    if (operation.memory)
      text << " (" << bytes << " bytes)";
    if (count)
      lines.emplace_back(~count, text.str());
  }
  std::sort(lines.begin(), lines.end());
  std::cout.imbue(users);
  std::cout << "Instructions executed for kernel '" << name << "':" << std::endl;
  for (auto &line : lines)
    std::cout << std::setw(16) << std::dec << ~line.first << " - " << line.second << '\n';
  std::cout << launch.modelled << std::endl;
  std::cout.imbue(before);
}

static std::list<Native *> plugins;

extern "C" void initializePlugins(Context *context) {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void *>(initializePlugins), &self))
    return;
  dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);  // what was built of programs finds its builtins here
  void *page = mmap(nullptr, TRAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (page == MAP_FAILED)
    return;
  trap_page = static_cast<char *>(page);
  plugins.push_back(new Native(context));
  context->registerPlugin(plugins.back());
}

extern "C" void releasePlugins(Context *context) {
  for (Native *plugin : plugins)
    plugin->leave(context);
}
