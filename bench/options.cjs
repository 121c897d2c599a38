// The command line of `npm run bench`.

const letters = ['a', 'b', 'c', 'd', 'e', 'f']
const switches = /** @type {const} */ (['quick', 'write', 'check', 'render'])

/**
 * @param {readonly string[]} args
 * @returns {{ only: string[], quick: boolean, write: boolean, check: boolean, render: boolean }}
 */
function readOptions(args) {
  const options = { only: letters, quick: false, write: false, check: false, render: false }
  for (let i = 0; i < args.length; i++) {
    const [name, inline] = /** @type {[string, string | undefined]} */ (
      /** @type {string} */ (args[i]).split('=', 2)
    )
    if (name === '--only') options.only = readLetters(inline ?? args[++i])
    else {
      const option = switches.find((one) => name === `--${one}`)
      if (!option) throw new Error(`Unknown option ${name}. Expected --only a,e, --${switches.join(', --')}`)
      options[option] = true
    }
  }
  if (options.write && options.only.length < letters.length) {
    throw new Error(
      '--write needs all sections, so that all figures of the page are of one run: leave out --only',
    )
  }
  return options
}

/** @param {string | undefined} list */
function readLetters(list) {
  const chosen = list?.split(',') ?? []
  if (chosen.length === 0 || chosen.some((letter) => !letters.includes(letter))) {
    throw new Error(`--only is ${list}. Expected some of ${letters.join(', ')}, as in --only a,e`)
  }
  return letters.filter((letter) => chosen.includes(letter))
}

module.exports = { readOptions }
