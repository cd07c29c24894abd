/// The rules that every text goes through, in their order: what a text must have for one to find anything, and the rule.
enum BuiltInRule {
  case privateKeys, urlCredentials, knownPrefixes, webTokens, authorization, namedValues
  case accounts, cards, socialSecurity, phones, hardwareAddresses, internetAddresses, internetAddresses6

  // Specific rules before general ones: a card number is a run of digits too, and a URL's password looks like an e-mail
  // address.
  static let specific: [BuiltInRule] = [
    .privateKeys, .urlCredentials, .knownPrefixes, .webTokens, .authorization, .namedValues,
  ]
  static let numbers: [BuiltInRule] = [
    .accounts, .cards, .socialSecurity, .phones, .hardwareAddresses, .internetAddresses, .internetAddresses6,
  ]

  func isWanted(_ text: TextTraits) -> Bool {
    switch self {
    case .privateKeys: text.longestWord >= 10 && text.hyphens >= 5
    case .urlCredentials: text.hasAt && text.colons > 0 && text.hasSlash
    case .knownPrefixes: text.mayHoldKey
    case .webTokens: text.mayHoldWebToken
    case .authorization: text.mayNameScheme && (text.digits > 0 || text.colons > 0 || text.hasEquals)
    case .namedValues:
      text.colons > 0 || text.hasEquals || text.hyphens > 0 || (text.digits > 0 && text.mayNamePassword)
    case .accounts: text.mayHoldAccount
    case .cards: text.digits >= 13
    case .socialSecurity: text.digits >= 9 && text.hyphens >= 2
    case .phones: text.digits >= 8 && text.hasPlus
    case .hardwareAddresses: text.colons >= 5 || text.hyphens >= 5
    case .internetAddresses: text.digits >= 4 && text.dots >= 3
    case .internetAddresses6: text.digits > 0 && text.colons >= 2
    }
  }

  /// What is to be replaced: ascending, without overlap.
  func find(in text: Span<UInt8>) -> [Range<Int>] {
    switch self {
    case .privateKeys: SecretRules.privateKeys(text)
    case .urlCredentials: SecretRules.urlCredentials(text)
    case .knownPrefixes: SecretRules.knownPrefixes(text)
    case .webTokens: SecretRules.webTokens(text)
    case .authorization: SecretRules.authorization(text)
    case .namedValues: NamedValueRule.values(text)
    case .accounts: NumberRules.accounts(text)
    case .cards: NumberRules.cards(text)
    case .socialSecurity: NumberRules.socialSecurity(text)
    case .phones: NumberRules.phones(text)
    case .hardwareAddresses: NumberRules.hardwareAddresses(text)
    case .internetAddresses: NumberRules.internetAddresses(text)
    case .internetAddresses6: NumberRules.internetAddresses6(text)
    }
  }
}
