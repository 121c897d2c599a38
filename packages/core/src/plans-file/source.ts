/** The way to a value from the root: keys of objects, and places in arrays from 0. */
export type Path = readonly (string | number)[]

/** Where an entry of an object or array stands, as offsets into the text; an array's entries have no key of their own. */
export interface Place {
  readonly key: number
  readonly value: number
}

/** A text that was parsed, and still knows where each of its values came from. */
export interface Source {
  readonly value: unknown
  /** The place of a value, or undefined where the text has none. */
  find(path: Path): Place | undefined
}

/** What makes a text unreadable, and the offset at which it does. */
export class SyntaxMistake extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message)
  }
}
