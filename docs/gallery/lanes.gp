# docs/gallery/lanes.gp - a timeline: columns of `data`: lane, start (ms), end (ms), kind; `lanes` and `kinds` have the names, a "_" a space.
# `span` ms are drawn. A hair of background parts what follows at once.
unset grid
set border 1
set lmargin at screen 0.16
set tmargin at screen 1.0 - 118.0/height
set xrange [0:span]
set yrange [words(lanes):0]
set xlabel 'time (ms)' textcolor rgb ink
set ytics scale 0
set ytics ()
plain(text) = strstrt(text, '_') ? plain(text[1:strstrt(text, '_')-1] . ' ' . text[strstrt(text, '_')+1:*]) : text
do for [i=1:words(lanes)] {
    set ytics add (plain(word(lanes, i)) i - 0.5)
    set object 100+i rectangle from 0, i - 0.88 to span, i - 0.12 behind fc rgb '#EDEDED' fs solid noborder
}
set key at screen 0.155, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
colours = "#0066A6 #009E73 #B5508F #3D1F66 #6FBCEB #D55E00 #E38B00"
gap = 0.0006 * span
end_of(a, b) = b - a > 4 * gap ? b - gap : b
of(i) = stringcolumn(4) eq word(kinds, i) ? column(2) : NaN
plot for [i=1:words(kinds)] data skip 1 using (of(i)):(column(1) - 0.5):(of(i)):(end_of(column(2), column(3))):(column(1) - 0.88):(column(1) - 0.12) \
         with boxxyerror lc rgb word(colours, i) title plain(word(kinds, i)), \
     NaN with boxes lc rgb '#EDEDED' title 'idle'
