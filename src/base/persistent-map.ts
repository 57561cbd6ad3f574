import { assert } from './assert.ts'

/**
 * An immutable map: a change gives a new map that shares all but the path to what changed, so that it costs O(log32 n)
 * however large the map is, and the old map stays as it was. A hash trie with 32-way branches (Bagwell 2001, as in
 * Clojure). Iteration is in no particular order and keeps its place between steps, so that a walk over a large map can
 * be cut into turns of the event loop.
 *
 * Many changes at once go through `edit()`: branches that the edit made itself are changed in place.
 */
export class PersistentMap<K extends string | number, V> {
  readonly size: number
  readonly #root: Branch<K, V>

  private constructor(root: Branch<K, V>, size: number) {
    this.#root = root
    this.size = size
  }

  static empty<K extends string | number, V>(): PersistentMap<K, V> {
    return new PersistentMap<K, V>(new Branch<K, V>(undefined, 0, []), 0)
  }

  get(key: K): V | undefined {
    return find(this.#root, hashOf(key), key)?.value
  }

  has(key: K): boolean {
    return find(this.#root, hashOf(key), key) !== undefined
  }

  set(key: K, value: V): PersistentMap<K, V> {
    return this.edit().set(key, value).finish()
  }

  delete(key: K): PersistentMap<K, V> {
    return this.edit().delete(key).finish()
  }

  edit(): PersistentMapEdit<K, V> {
    return new PersistentMapEdit<K, V>(this, this.#root, this.size, PersistentMap.#make)
  }

  static #make<K extends string | number, V>(root: Branch<K, V>, size: number): PersistentMap<K, V> {
    return new PersistentMap(root, size)
  }

  *entries(): Generator<readonly [K, V]> {
    for (const leaf of leavesOf(this.#root)) yield [leaf.key, leaf.value]
  }

  *keys(): Generator<K> {
    for (const leaf of leavesOf(this.#root)) yield leaf.key
  }

  *values(): Generator<V> {
    for (const leaf of leavesOf(this.#root)) yield leaf.value
  }
}

/** A series of changes to one map, that nobody sees before `finish`. */
export class PersistentMapEdit<K extends string | number, V> {
  readonly #base: PersistentMap<K, V>
  readonly #baseRoot: Branch<K, V>
  readonly #make: (root: Branch<K, V>, size: number) => PersistentMap<K, V>
  /** Marks the branches that this edit made; replaced at `finish`, so that a finished map is never changed. */
  #owner: EditOwner = { copiedBranches: 0 }
  #root: Branch<K, V>
  #size: number

  constructor(
    base: PersistentMap<K, V>,
    root: Branch<K, V>,
    size: number,
    make: (root: Branch<K, V>, size: number) => PersistentMap<K, V>,
  ) {
    this.#base = base
    this.#baseRoot = root
    this.#root = root
    this.#size = size
    this.#make = make
  }

  /** Branches that this edit made or copied so far: what the changes cost. */
  get copiedBranches(): number {
    return this.#owner.copiedBranches
  }

  get(key: K): V | undefined {
    return find(this.#root, hashOf(key), key)?.value
  }

  set(key: K, value: V): this {
    const hash = hashOf(key)
    const before = find(this.#root, hash, key)
    if (before !== undefined && Object.is(before.value, value)) return this
    this.#root = put(this.#owner, this.#root, 0, new Leaf(hash, key, value))
    if (before === undefined) this.#size++
    return this
  }

  delete(key: K): this {
    const hash = hashOf(key)
    if (find(this.#root, hash, key) === undefined) return this
    const root = remove(this.#owner, this.#root, 0, hash, key)
    if (root instanceof Branch) this.#root = root
    else if (root === undefined) this.#root = new Branch<K, V>(this.#owner, 0, [])
    else this.#root = new Branch<K, V>(this.#owner, slotBit(root.hash, 0), [root])
    this.#size--
    return this
  }

  /** The map with the changes; the base itself when there were none. */
  finish(): PersistentMap<K, V> {
    if (this.#root === this.#baseRoot) return this.#base
    this.#owner = { copiedBranches: this.copiedBranches }
    return this.#make(this.#root, this.#size)
  }
}

interface EditOwner {
  copiedBranches: number
}

class Leaf<K, V> {
  readonly hash: number
  readonly key: K
  readonly value: V

  constructor(hash: number, key: K, value: V) {
    this.hash = hash
    this.key = key
    this.value = value
  }
}

/** Two or more keys with one 32-bit hash. */
class Collision<K, V> {
  readonly hash: number
  readonly leaves: readonly Leaf<K, V>[]

  constructor(hash: number, leaves: readonly Leaf<K, V>[]) {
    this.hash = hash
    this.leaves = leaves
  }
}

/** Bit i of `bitmap` says that slot i is used; `children` holds the used slots in order. */
class Branch<K, V> {
  readonly owner: EditOwner | undefined
  bitmap: number
  readonly children: Child<K, V>[]

  constructor(owner: EditOwner | undefined, bitmap: number, children: Child<K, V>[]) {
    this.owner = owner
    this.bitmap = bitmap
    this.children = children
    if (owner !== undefined) owner.copiedBranches++
  }
}

type Child<K, V> = Branch<K, V> | Leaf<K, V> | Collision<K, V>

/** Bits of the hash that one level uses. */
const bitsPerLevel = 5

function find<K, V>(root: Branch<K, V>, hash: number, key: K): Leaf<K, V> | undefined {
  let branch = root
  for (let shift = 0; ; shift += bitsPerLevel) {
    const bit = slotBit(hash, shift)
    if ((branch.bitmap & bit) === 0) return undefined
    const child = branch.children[position(branch.bitmap, bit)]
    if (child instanceof Branch) branch = child
    else if (child instanceof Leaf) return child.key === key ? child : undefined
    else return child?.leaves.find((leaf) => leaf.key === key)
  }
}

function put<K, V>(owner: EditOwner, branch: Branch<K, V>, shift: number, leaf: Leaf<K, V>): Branch<K, V> {
  const bit = slotBit(leaf.hash, shift)
  const at = position(branch.bitmap, bit)
  const own = editable(owner, branch)
  const child = branch.children[at]
  if ((branch.bitmap & bit) === 0) {
    own.bitmap |= bit
    own.children.splice(at, 0, leaf)
  } else if (child instanceof Branch) {
    own.children[at] = put(owner, child, shift + bitsPerLevel, leaf)
  } else {
    assert(child !== undefined, 'a used slot has a child')
    own.children[at] = child.hash === leaf.hash ? join(child, leaf) : split(owner, child, shift + bitsPerLevel, leaf)
  }
  return own
}

/** `child` and `leaf` share their hash. */
function join<K, V>(child: Leaf<K, V> | Collision<K, V>, leaf: Leaf<K, V>): Child<K, V> {
  const others = (child instanceof Leaf ? [child] : child.leaves).filter((other) => other.key !== leaf.key)
  return others.length === 0 ? leaf : new Collision(leaf.hash, [...others, leaf])
}

/** A branch that tells `child` and `leaf` apart. Their hashes differ, so some level below has different slots. */
function split<K, V>(
  owner: EditOwner,
  child: Leaf<K, V> | Collision<K, V>,
  shift: number,
  leaf: Leaf<K, V>,
): Branch<K, V> {
  return put(owner, new Branch<K, V>(owner, slotBit(child.hash, shift), [child]), shift, leaf)
}

/** What remains of `branch`; a lone leaf takes its branch's place in the level above, so that paths stay short. */
function remove<K, V>(
  owner: EditOwner,
  branch: Branch<K, V>,
  shift: number,
  hash: number,
  key: K,
): Child<K, V> | undefined {
  const bit = slotBit(hash, shift)
  const at = position(branch.bitmap, bit)
  const rest = without(owner, branch.children[at], shift, hash, key)
  if (rest === undefined && branch.children.length === 1) return undefined
  const own = editable(owner, branch)
  if (rest === undefined) {
    own.bitmap &= ~bit
    own.children.splice(at, 1)
  } else {
    own.children[at] = rest
  }
  const [only] = own.children
  return own.children.length === 1 && !(only instanceof Branch) ? only : own
}

function without<K, V>(
  owner: EditOwner,
  child: Child<K, V> | undefined,
  shift: number,
  hash: number,
  key: K,
): Child<K, V> | undefined {
  if (child instanceof Branch) return remove(owner, child, shift + bitsPerLevel, hash, key)
  if (child === undefined || child instanceof Leaf) return undefined
  const leaves = child.leaves.filter((leaf) => leaf.key !== key)
  return leaves.length === 1 ? leaves[0] : new Collision(hash, leaves)
}

function editable<K, V>(owner: EditOwner, branch: Branch<K, V>): Branch<K, V> {
  return branch.owner === owner ? branch : new Branch(owner, branch.bitmap, branch.children.slice())
}

function* leavesOf<K, V>(root: Branch<K, V>): Generator<Leaf<K, V>> {
  const stack: Child<K, V>[] = [root]
  for (let child = stack.pop(); child !== undefined; child = stack.pop()) {
    if (child instanceof Leaf) yield child
    else for (const below of child instanceof Branch ? child.children : child.leaves) stack.push(below)
  }
}

function slotBit(hash: number, shift: number): number {
  return 1 << ((hash >>> shift) & 31)
}

/** How many used slots are below `bit`. */
function position(bitmap: number, bit: number): number {
  let below = bitmap & (bit - 1)
  below -= (below >>> 1) & 0x55555555
  below = (below & 0x33333333) + ((below >>> 2) & 0x33333333)
  return Math.imul((below + (below >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** FNV-1a over the UTF-16 units, or the number's low bits; then mixed, so that every level gets good bits. */
function hashOf(key: string | number): number {
  let hash = 0x811c9dc5
  if (typeof key === 'number') hash ^= key
  else for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
