# docs/gallery/layers.gp - columns of `data`: place, layer, then GiB of weights, gradients, optimizer, activations, the rest. Stacked bars.
set ylabel 'GiB at the peak' textcolor rgb ink
set xlabel 'layer' textcolor rgb ink
set yrange [0:2]
set xrange [-0.6:*]
set boxwidth 0.86
set xtics scale 0
set tmargin at screen 1.0 - 104.0/height
set key at screen 0.08, screen 1.0 - 66.0/height left top horizontal reverse Left samplen 1.2 maxrows 1 textcolor rgb ink
kinds = "weights gradients optimizer activations workspace"
colours = '#0072B2 #56B4E9 #7A6A9B #E69F00 #CC79A7'
upto(n) = sum [j=1:n] column(2 + j)
plot for [i=5:1:-1] data skip 1 using 1:(upto(i)):xtic(2) with boxes lc rgb word(colours, i) title word(kinds, i)
