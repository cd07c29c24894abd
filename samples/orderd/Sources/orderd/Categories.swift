final class Category {
  var parent: Category?
}

/// The catalogue's tree, which by mistake is none.
enum Categories {
  static func makeCyclic() -> Category {
    let drinks = Category()
    let hot = Category()
    hot.parent = drinks
    drinks.parent = hot
    return hot
  }

  // Bug: ends at a category without a parent, of which there is none.
  @inline(never)
  static func depth(of category: Category) -> Int {
    guard let parent = category.parent else { return 0 }
    let above = depth(of: parent)
    return above &+ (above & 1) &+ 1
  }

  // Bug: the same mistake, by somebody else.
  @inline(never)
  static func discount(in category: Category) -> Int {
    guard let parent = category.parent else { return 10 }
    let inherited = discount(in: parent)
    return inherited > 5 ? inherited &- 1 : inherited &* 2
  }
}
