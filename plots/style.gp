# plots/style.gp - what all plots share: terminal, fonts, colours, a quiet frame, heading and caption. Loaded by the others
# after they have set `width`, `height` and `edge`, where their plots begin, left; `svg`, `pixels` (the picture's width; 0: as drawn) and
# `picture` come from the driver.
set encoding utf8
if (svg) {
    set terminal svg size width,height dynamic font 'DejaVu Sans,12' fontscale 1.333 background '#FFFFFF' noenhanced
} else {
    zoom = exists('pixels') && pixels > 0 ? 1.0 * pixels / width : 1.0
    if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {
        set terminal pngcairo size int(width*zoom+0.5),int(height*zoom+0.5) font 'DejaVu Sans,12' fontscale zoom linewidth zoom pointscale zoom \
            background '#FFFFFF' noenhanced
    } else {
        set terminal png size int(width*zoom+0.5),int(height*zoom+0.5) font 'DejaVu Sans,12' fontscale zoom linewidth zoom pointscale zoom noenhanced
    }
}
set output picture
set datafile separator comma
ink = '#222222'
faint = '#BBBBBB'
# Colours of words: `colour_words` and `colour_codes` come from the driver.
coded(w) = int(sum [i=1:words(colour_words)] (word(colour_words, i) eq w ? word(colour_codes, i) + 0 : 0))
grouped(n) = n < 1000 ? sprintf('%d', n) : grouped(int(n / 1000)) . sprintf(',%03d', int(n) % 1000)
set border 3 lc rgb '#888888' lw 1
set tics nomirror out textcolor rgb ink
set grid ytics lc rgb '#E4E4E4' lw 1 lt 1
set style fill solid 1.0 noborder
# A heading too long for one line takes two smaller ones, and ends in dots where these do not hold it either.
if (exists('heading') && exists('edge')) {
    room = (0.985 - edge) * width
    if (strlen(heading) <= room / 11) {
        set label 1 heading at screen edge, screen 1.0 - 26.0/height left font ',15' textcolor rgb ink
    } else {
        letters = int(room / 8.2)
        first = heading
        rest = ''
        if (strlen(heading) > letters) {
            cut = letters
            while (cut > letters / 2 && heading[cut:cut] ne ' ') { cut = cut - 1 }
            if (heading[cut:cut] ne ' ') { cut = letters }
            first = heading[1:cut]
            rest = heading[cut+1:strlen(heading)]
            if (strlen(rest) > letters) { rest = rest[1:letters-1] . '…' }
        }
        set label 1 first . "\n" . rest at screen edge, screen 1.0 - 16.0/height left font ',11' textcolor rgb ink
    }
    set label 2 caption at screen edge, screen 1.0 - 52.0/height left font (strlen(caption) <= room / 8.4 ? ',12' : strlen(caption) <= room / 7 ? ',10' : ',9') textcolor rgb '#555555'
}
