/** `target` with some of its methods replaced; the others run on `target` itself, private fields included. */
export function overriding<T extends object>(target: T, overrides: Partial<T>): T {
  const bound = new Map<PropertyKey, unknown>()
  return new Proxy(target, {
    get(_, property) {
      const override = Reflect.get(overrides, property)
      if (override !== undefined) return override
      const known = bound.get(property)
      if (known !== undefined) return known
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      const method: unknown = value.bind(target)
      bound.set(property, method)
      return method
    },
  })
}
