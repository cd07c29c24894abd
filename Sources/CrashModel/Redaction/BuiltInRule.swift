/// The rules that every text goes through, in their order, and what stands for their findings where they are told apart.
enum BuiltInRule {
  case privateKeys, urlCredentials, knownPrefixes, chatServices, webTokens, authorization, namedValues
  case accounts, cards, socialSecurity, phones, hardwareAddresses, internetAddresses, internetAddresses6, otherDigits

  // Specific rules before general ones: a card number is a run of digits too, and a URL's password looks like an e-mail
  // address.
  static let specific: [BuiltInRule] = [
    .privateKeys, .urlCredentials, .knownPrefixes, .chatServices, .webTokens, .authorization, .namedValues,
  ]
  static let numbers: [BuiltInRule] = [
    .accounts, .cards, .socialSecurity, .phones, .hardwareAddresses, .internetAddresses, .internetAddresses6,
    .otherDigits,
  ]

  var token: StaticString {
    switch self {
    case .privateKeys: "[private-key]"
    case .urlCredentials, .authorization: "[credentials]"
    case .knownPrefixes, .chatServices: "[key]"
    case .webTokens: "[token]"
    case .namedValues: "[secret]"
    case .accounts: "[iban]"
    case .cards: "[card]"
    case .socialSecurity: "[ssn]"
    case .phones: "[phone]"
    case .hardwareAddresses: "[mac]"
    case .internetAddresses, .internetAddresses6: "[ip]"
    case .otherDigits: "[number]"
    }
  }

  /// What is to be replaced: ascending, without overlap.
  func find(in text: Span<UInt8>) -> [Range<Int>] {
    switch self {
    case .privateKeys: SecretRules.privateKeys(text)
    case .urlCredentials: SecretRules.urlCredentials(text)
    case .knownPrefixes: SecretRules.knownPrefixes(text)
    case .chatServices: SecretRules.chatServices(text)
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
    case .otherDigits: NumberRules.otherDigits(text)
    }
  }
}
