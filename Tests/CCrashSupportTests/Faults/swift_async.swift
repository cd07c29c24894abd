// swift-format-ignore-file
// The functions are found again by their names, which stand out like this.
// Tasks of every kind that crash behind functions that await: who awaits is on no stack.
import Glibc

enum Request {
  @TaskLocal static var id: String?
  @TaskLocal static var tenant: String = "none"
}

@inline(never) func as_crash() {
  if getpid() != 0 { fatalError("in a task") }
  print("unreachable")
}
// Behind a suspension: the task goes on on a fresh stack.
@inline(never) func as_leaf() async {
  await Task.yield()
  as_crash()
  print("leaf")
}
@inline(never) func as_mid() async {
  await as_leaf()
  print("mid")
}
@inline(never) func as_top() async {
  await as_mid()
  print("top")
}

// Without a suspension: part of the callers is still on the stack.
@inline(never) func as_direct() async {
  as_crash()
  print("direct")
}
@inline(never) func as_direct_top() async {
  await as_direct()
  print("direct top")
}

@inline(never) nonisolated(nonsending) func as_ns2() async {
  as_crash()
  print("ns2")
}
@inline(never) nonisolated(nonsending) func as_ns1() async {
  await as_ns2()
  print("ns1")
}

actor Ledger {
  @inline(never) func as_book() async {
    await as_top()
    print("book")
  }
}

@inline(never) @MainActor func as_on_main() async {
  await as_top()
  print("on main")
}

@main struct Main {
  static func main() async {
    async_start()
    let key = Unmanaged.passUnretained(Request.$id).toOpaque()
    let tenant = Unmanaged.passUnretained(Request.$tenant).toOpaque()
    _ = crash_support_register_task_local("request_id", 10, key)
    _ = crash_support_register_task_local("tenant", 6, tenant)
    switch CommandLine.arguments.dropFirst().first ?? "" {
    case "task": await Task { await as_top() }.value
    case "detached": await Task.detached { await as_top() }.value
    case "main": await as_top()
    case "main_actor": await as_on_main()
    case "direct": await Task { await as_direct_top() }.value
    case "nonsending": await Task { await as_ns1() }.value
    case "actor": await Ledger().as_book()
    case "group":
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await as_top() }
      }
    case "let":
      async let crash: Void = as_top()
      await crash
    case "named":
      await Request.$id.withValue("a request id that is longer than fifteen bytes, of jane@example.com") {
        await Request.$tenant.withValue("acme") {
          await Task(name: "nightly export") { await as_top() }.value
        }
      }
    case "none": as_crash()
    default: exit(64)
    }
  }
}
