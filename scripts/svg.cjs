// Pieces of SVG that the charts have in common. CommonJS, so that plain programs and tests load the same file.

/** A number as it stands in a drawing. */
const at = (/** @type {number} */ number) => String(Math.round(number * 100) / 100)

/** @param {string} body */
const encode = (body) => body.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** @param {number} left @param {number} top @param {string} body @param {string} [more] further attributes */
const text = (left, top, body, more = '') =>
  `<text x="${at(left)}" y="${at(top)}"${more}>${encode(body)}</text>`

/**
 * A whole drawing, on a ground of its own, so that it can be read on any page.
 * @param {{ width: number, height: number, title: string, ink: string, ground: string, style?: string }} frame
 *   `ink` and `ground`: colours of text and background; `style`: CSS, which may replace them
 * @param {string[]} parts
 */
function drawing({ width, height, title, ink, ground, style }, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="${ink}">`,
    `<title>${encode(title)}</title>`,
    ...(style ? [`<style>${style}</style>`] : []),
    `<rect ${style ? 'class="ground" ' : ''}width="${width}" height="${height}" rx="6" fill="${ground}"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

module.exports = { at, text, drawing }
