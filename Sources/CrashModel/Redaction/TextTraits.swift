private import CCrashFormat

/// What one reading of a text tells about it, so that most rules need not look at it at all.
struct TextTraits {
  private let suspicions: UInt32

  /// Every text of every report goes through here.
  init(_ text: Span<UInt8>) {
    suspicions = text.withUnsafeBytes { bytes in
      NamedValueRule.endings.withUnsafeBufferPointer { endings in
        SecretRules.beginnings.withUnsafeBufferPointer { beginnings in
          crash_suspicions(
            bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, endings.baseAddress,
            beginnings.baseAddress)
        }
      }
    }
  }

  /// No rule can find anything.
  var isClean: Bool { suspicions == 0 }
  var wantsBaseRules: Bool { suspicions & UInt32(CRASH_SUSPECT_BASE) != 0 }

  /// Whether the rule could find something.
  @inline(__always)
  func suspect(_ rule: BuiltInRule) -> Bool { suspicions & Self.suspicion(of: rule) != 0 }

  @inline(__always)
  private static func suspicion(of rule: BuiltInRule) -> UInt32 {
    let constant =
      switch rule {
      case .privateKeys: CRASH_SUSPECT_PRIVATE_KEY
      case .urlCredentials: CRASH_SUSPECT_CREDENTIALS
      case .knownPrefixes: CRASH_SUSPECT_KEY
      case .chatServices: CRASH_SUSPECT_CHAT
      case .webTokens: CRASH_SUSPECT_WEB_TOKEN
      case .authorization: CRASH_SUSPECT_AUTHORIZATION
      case .namedValues: CRASH_SUSPECT_NAMED
      case .accounts: CRASH_SUSPECT_ACCOUNT
      case .cards: CRASH_SUSPECT_CARD
      case .socialSecurity: CRASH_SUSPECT_SOCIAL_SECURITY
      case .phones: CRASH_SUSPECT_PHONE
      case .hardwareAddresses: CRASH_SUSPECT_HARDWARE
      case .internetAddresses: CRASH_SUSPECT_IP4
      case .internetAddresses6: CRASH_SUSPECT_IP6
      case .otherDigits: CRASH_SUSPECT_OTHER_DIGITS
      }
    return UInt32(constant)
  }
}
