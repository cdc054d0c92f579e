# plots/busbw.gp - bus bandwidth against size, a line a number of nodes. Columns of `data`: nodes, ranks, bytes,
# busbw_gb_per_s, algorithm, protocol.
width = 1200
height = 640
edge = 0.075
load style
set datafile columnheaders
set lmargin at screen 0.075
set rmargin at screen 0.84
set bmargin at screen 66.0 / height
set tmargin at screen 1.0 - 84.0 / height
set logscale x 2
set xrange [least:most]
set yrange [0:best * 1.08]
set xlabel 'size' textcolor rgb ink
set ylabel 'bus bandwidth (GB/s)' textcolor rgb ink
set xtics ()
unit(b) = b >= 2.0**30 ? sprintf('%g GiB', b / 2.0**30) : b >= 2.0**20 ? sprintf('%g MiB', b / 2.0**20) : \
          b >= 1024 ? sprintf('%g KiB', b / 1024.0) : sprintf('%g B', b)
step = int(ceil(log(most / least) / log(2) / 10.0))
step = step < 1 ? 1 : step
do for [i=0:int(log(most / least) / log(2) + 0.5):step] { set xtics add (unit(least * 2.0**i) least * 2.0**i) }
set key at screen 0.855, screen 1.0 - 84.0/height left top vertical Left reverse samplen 2 textcolor rgb ink
colours = '#0072B2 #E69F00 #009E73 #D55E00 #CC79A7 #56B4E9 #000000 #999999 #8C564B #117733'
busy(n) = column('nodes') == n ? column('busbw_gb_per_s') : NaN
plot for [i=1:words(nodes)] data using 'bytes':(busy(int(word(nodes, i)))) with linespoints lw 1.8 pt 7 ps 0.7 \
         lc rgb word(colours, (i - 1) % words(colours) + 1) \
         title word(nodes, i) . (word(nodes, i) eq '1' ? ' node' : ' nodes')
