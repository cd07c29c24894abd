/// The rule that decided a frame's class.
///
/// A value of its own rather than a sentence: a batch decides on millions of frames and shows none of the sentences.
enum FrameRule: Hashable, Sendable {
  case failedCheck
  case noSymbol
  case noSymbolBesideRuntime
  case noSymbolOfApplication
  case noSymbolAtThreadStart
  case sharedFunction
  case foldedFunction
  case thunkOfNoModule
  case moduleOfToolchain(String)
  case generatedCode
  case moduleOfApplication(String)
  case sourceOfDependency
  case moduleOfPackage(String)
  case moduleOutsideToolchain(String)
  case moduleOutsideApplication(String)
  case madeByCompiler
  case imageOfSystem(String)
  case functionOfRuntimes
  case noDebugInformation
  case sourceOfSystem
  case imageOfApplication
  case ruleOfUser

  var text: String {
    switch self {
    case .failedCheck: "the compiler's name for a failed check"
    case .noSymbol: "no symbol"
    case .noSymbolBesideRuntime: "no symbol, in an image that may hold the runtime too"
    case .noSymbolOfApplication: "no symbol, in an image of the application"
    case .noSymbolAtThreadStart: "no symbol, where a thread begins"
    case .sharedFunction: "a shared or forwarding function without debug information"
    case .foldedFunction: "folded with the function that its caller's inlining names"
    case .thunkOfNoModule: "a thunk of no module"
    case .moduleOfToolchain(let module): "module \(module) of the toolchain"
    case .generatedCode: "code that the compiler made up"
    case .moduleOfApplication(let module): "module \(module) is the application's"
    case .sourceOfDependency: "source below a dependency's checkout"
    case .moduleOfPackage(let module): "module \(module) of a package that is no dependency"
    case .moduleOutsideToolchain(let module): "module \(module) is not the toolchain's"
    case .moduleOutsideApplication(let module): "module \(module) is not the application's"
    case .madeByCompiler: "code that the compiler made up"
    case .imageOfSystem(let path): "image \(Image.name(ofPath: path)) of the system"
    case .functionOfRuntimes: "a function of the runtimes"
    case .noDebugInformation: "no debug information in an image that has it"
    case .sourceOfSystem: "source among the system's headers"
    case .ruleOfUser: "a rule of the rules file"
    case .imageOfApplication: "C or C++ of the application's image"
    }
  }
}
