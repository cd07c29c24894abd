package import CrashModel

/// Says how a run ended, from its record and from what the machine says now. The table: `docs/endings.md`.
///
/// Nothing is guessed: a verdict comes with what it rests on, and with what would have left the same.
package struct EndingJudge: Sendable {
  private let machine: MachineState

  package init(machine: MachineState) { self.machine = machine }

  /// The ending of a run whose record nobody holds any more.
  package func ending(of record: CrashRecord) -> Ending {
    if record.hasCrash { return Ending(kind: .crashed) }
    var ending = verdict(on: record)
    if !record.isIntact { ending.evidence += record.notes }
    return ending
  }

  private func verdict(on record: CrashRecord) -> Ending {
    switch record.runState {
    case .exited:
      if case .exit(let status) = record.processEnd {
        return Ending(kind: .clean, exitStatus: status, evidence: ["Its exit handlers ran, with status \(status)."])
      }
      return Ending(kind: .clean, evidence: ["Its exit handlers ran."])
    case .stopped: return Ending(kind: .stopped, evidence: ["The reporter was stopped before the process ended."])
    case .starting:
      return Ending(
        kind: .startFailed, evidence: ["The reporter was still being started."],
        couldAlsoBe: ["the machine stopped in that moment"])
    case .unknown(let state):
      return Ending(kind: .unknown, evidence: ["The state of the run in its record is not known: \(state)."])
    case .alive: break
    }
    if case .signal(let signal, let time) = record.processEnd { return terminated(by: signal, at: time, record) }
    return silent(record)
  }

  private func terminated(by signal: SignalInfo, at time: Timestamp?, _ record: CrashRecord) -> Ending {
    var evidence = "\(signal.name) came"
    if let time { evidence += " at \(time.rfc3339)" }
    if let sender = signal.senderPID {
      if sender == 0 {
        evidence += ", sent from outside of its pid namespace or by the kernel"
      } else if sender == record.process?.id {
        evidence += ", caused by the process itself"
      } else {
        evidence += ", sent by process \(sender)"
        // Whoever began after it ended has only got its number.
        if hasSameBoot(record) != false, let name = machine.name(sender) {
          evidence += " (now called \(name))"
        }
        if let user = signal.senderUID { evidence += " of user \(user)" }
      }
    }
    var ending = Ending(kind: .terminated, evidence: [evidence + "; its action was the default one."])
    if hasSameBoot(record) == false { ending.evidence.append("The machine was started anew since.") }
    return ending
  }

  /// nil where one of the two is not known.
  private func hasSameBoot(_ record: CrashRecord) -> Bool? {
    guard let then = record.bootID, then.contains(where: { $0 != 0 }), let now = machine.bootID else { return nil }
    return then == now
  }

  // The record says that the process was running, and nothing else.
  private func silent(_ record: CrashRecord) -> Ending {
    let boot = hasSameBoot(record)
    if boot == false {
      return Ending(
        kind: .machineStopped, evidence: ["The machine was started anew since, and the process was still running."],
        couldAlsoBe: ["killed before the machine stopped", "a call of _exit before the machine stopped"])
    }
    if boot == true, let id = record.process?.id, let ticks = record.startTicks, ticks != 0 {
      switch machine.startTicks(id) {
      case ticks:
        return Ending(
          kind: .replaced,
          evidence: ["Process \(id) lives and began when this one did, but does not hold the record any more."])
      default: break  // the number is free, or somebody else's
      }
    }
    return outOfMemory(record) ?? killed(record, bootIsKnown: boot != nil)
  }

  private func outOfMemory(_ record: CrashRecord) -> Ending? {
    for (index, group) in record.memoryGroups.enumerated() {
      guard let now = machine.memoryGroup(group), now.inode == group.inode else { continue }
      // In version 1 a group does not count for those in it.
      guard index == 0 || group.version == 2 else { return nil }
      guard now.kills > group.kills else { return nil }
      let kills = now.kills - group.kills
      return Ending(
        kind: .outOfMemory,
        evidence: [
          "The kernel killed \(kills) \(kills == 1 ? "process" : "processes") of the memory cgroup \(group.path) "
            + "for want of memory since the run began.",
          "The process was running and left no other sign.",
        ],
        couldAlsoBe: ["killed by somebody, where it was another process of the cgroup that ran out of memory"])
    }
    return nil
  }

  private func killed(_ record: CrashRecord, bootIsKnown: Bool) -> Ending {
    var ending = Ending(
      kind: .killed, evidence: ["The process was running and left no other sign."],
      couldAlsoBe: [
        "a call of _exit, which runs no exit handlers",
        "a fault while its signal was blocked, for which the kernel asks no handler",
      ])
    if !bootIsKnown { ending.couldAlsoBe.append("a stop of the machine") }
    if record.memoryGroups.first.map({ machine.memoryGroup($0)?.inode != $0.inode }) ?? true {
      ending.evidence.append("Its memory cgroup cannot be asked any more.")
      ending.couldAlsoBe.append("out of memory")
    }
    if let before = record.machineKills, let now = machine.kills, now > before {
      ending.evidence.append(
        "The kernel killed \(now - before) processes of this machine for want of memory since the run began.")
    }
    return ending
  }
}

extension Ending.Kind {
  /// Whether the next start makes a report of it. A run that ended in good order leaves nothing.
  var isReported: Bool {
    switch self {
    case .terminated, .outOfMemory, .killed, .machineStopped, .startFailed, .unknown: true
    case .clean, .stopped, .crashed, .replaced: false
    }
  }

  /// The report's `type` where no signal is known.
  var typeName: String {
    switch self {
    case .clean: "Exit"
    case .stopped: "Stopped"
    case .crashed: "Crash"
    case .terminated: "Signal"
    case .outOfMemory: "OutOfMemory"
    case .killed: "Killed"
    case .machineStopped: "MachineStopped"
    case .replaced: "Replaced"
    case .startFailed: "StartFailed"
    case .unknown: "Unknown"
    }
  }
}

extension CrashRecord {
  /// The report about a run that ended without a crash.
  ///
  /// - Parameter modified: when the record was last written to, which is a sign of life.
  func report(on ending: Ending, modified: Timestamp?) -> CrashReport {
    var report = report()
    report.kind = .termination
    report.fatal = true
    report.ending = ending
    // No frame lies in them.
    report.images = []
    report.notes = []
    let lastSign = [breadcrumbs.last?.timestamp, modified].compactMap { $0 }.max()
    report.timestamp = lastSign
    if case .signal(let signal, let time) = processEnd, ending.kind == .terminated {
      report.signal = signal
      report.timestamp = time ?? lastSign
    } else if let lastSign {
      report.ending?.evidence.append("The last sign of life was at \(lastSign.rfc3339).")
    }
    report.type = report.signal?.name ?? ending.kind.typeName
    return report
  }
}
